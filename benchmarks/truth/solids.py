"""Overlaps of solids, by geometry in NumPy alone.

Along any unit vector ``n`` the overlap of two convex solids is at most ``h_a(n) + h_b(-n)``, with
their support functions: every direction is a proof. The smallest over all directions is the
overlap. For polyhedra it is among the normals of faces and the products of edges; with planes and
balls there are closed forms; other pairs are minimised from several starts, which can only give too
large an overlap, never too small a one.
"""

from functools import cached_property, lru_cache
from itertools import product

import numpy as np
import trimesh
from scipy.interpolate import NdBSpline, make_interp_spline
from scipy.optimize import minimize
from scipy.spatial import ConvexHull

from kinetree.model import geometry as g
from truth.mechanics import cross

try:
    import coal
except ImportError:  # one start less: what is called silent then is judged once more with it
    coal = None

ENOUGH = 1e-9  # [m]: no better direction is looked for than one that proves so little overlap


class Solid:
    """A convex shape in its own frame: support points, a bound, axes of a polyhedron."""

    def __init__(self, shape):
        self.shape, self.vertices = shape, None
        if isinstance(shape, g.Box):
            half = np.array(shape.size) / 2
            self.vertices = half * np.array(list(product((-1, 1), repeat=3)))
            self.faces = self.edges = np.eye(3)
        elif isinstance(shape, g.Mesh):
            self.vertices, self.faces, self.edges = _hull(shape.path, shape.scale)
        self.radius = {
            g.Sphere: lambda s: s.radius,
            g.Capsule: lambda s: s.radius + s.length / 2,
            g.Cylinder: lambda s: np.hypot(s.radius, s.length / 2),
            g.Ellipsoid: lambda s: max(s.radii),
        }.get(type(shape), lambda s: self._reach())(shape)

    def _reach(self):
        if self.vertices is None:
            return np.inf  # planes and height fields
        return np.linalg.norm(self.vertices, axis=1).max()

    @cached_property
    def of_peer(self):
        """The shape in coal."""
        s = self.shape
        if self.vertices is not None:
            hull = ConvexHull(self.vertices)
            points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
            points.extend(list(self.vertices))
            triangles.extend([coal.Triangle(*map(int, t)) for t in hull.simplices])
            return coal.Convex(points, triangles)
        if isinstance(s, g.Sphere):
            return coal.Sphere(s.radius)
        if isinstance(s, g.Ellipsoid):
            return coal.Ellipsoid(*s.radii)
        return getattr(coal, type(s).__name__)(s.radius, s.length)

    def support(self, n) -> float:
        """Largest ``n · x`` of the solid."""
        s = self.shape
        if self.vertices is not None:
            return (self.vertices @ n).max()
        if isinstance(s, g.Sphere):
            return s.radius * np.linalg.norm(n)
        if isinstance(s, g.Capsule):
            return s.radius * np.linalg.norm(n) + s.length / 2 * abs(n[2])
        if isinstance(s, g.Cylinder):
            return s.radius * np.hypot(n[0], n[1]) + s.length / 2 * abs(n[2])
        return np.linalg.norm(np.array(s.radii) * n)


@lru_cache(maxsize=256)
def _hull(path, scale):
    """Vertices, normals of faces and directions of edges of a mesh's convex hull."""
    mesh = trimesh.load_mesh(path)
    points = np.unique(np.asarray(mesh.vertices) * np.array(scale), axis=0)
    hull = ConvexHull(points)
    normals = _distinct(hull.equations[:, :3])
    pairs = {tuple(sorted((s[i], s[i - 1]))) for s in hull.simplices for i in range(3)}
    edges = np.array([points[a] - points[b] for a, b in pairs])
    return points[hull.vertices], normals, _distinct(edges)


def _distinct(vectors):
    """Unit vectors along these, each once, whatever its sign."""
    v = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    lead = np.argmax(np.abs(v) > 1e-9, axis=1)
    v = v * np.sign(v[np.arange(len(v)), lead])[:, None]
    return v[np.unique(np.round(v, 10), axis=0, return_index=True)[1]]


def overlap(a: Solid, A: np.ndarray, b: Solid, B: np.ndarray, starts=()) -> tuple:
    """How deep two solids at poses (4, 4) are inside each other [m]; negative: apart.

    Returns it with the direction, from the first to the second, that proves it.
    """
    kinds = type(a.shape), type(b.shape)
    if kinds[1] is g.Plane or (kinds[1] is g.Sphere and kinds[0] not in (g.Plane, g.Sphere)):
        depth, n = overlap(b, B, a, A, starts)
        return depth, -n
    if kinds[0] is g.Plane:
        n = A[:3, 2]
        return A[:3, 3] @ n - (B[:3, 3] @ n - b.support(-B[:3, :3].T @ n)), n
    if kinds[0] is g.Sphere and kinds[1] in (g.Sphere, g.Capsule, g.Box, g.Cylinder):
        return _of_ball(a.shape.radius, A[:3, 3], b, B)
    for n in () if g.HeightField in kinds else starts:  # what has kept them apart may do so again
        if (depth := _along(n, a, A, b, B)) <= ENOUGH:
            return depth, n
    if a.vertices is not None and b.vertices is not None:
        return _of_polyhedra(a, A, b, B)
    if isinstance(b.shape, g.HeightField) or isinstance(a.shape, g.HeightField):
        return _on_field(a, A, b, B)
    return _of_any(a, A, b, B, starts)


def _of_ball(radius, centre, b, B):
    """Distance of a ball from something that has a closed form of the distance of a point."""
    R = B[:3, :3]
    x = R.T @ (centre - B[:3, 3])
    depth, out = _inside(b.shape, x)  # of the point, and the way out
    return depth + radius, -(R @ out)


def _inside(s, x):
    """Depth of a point in a shape, negative outside, and the direction out of it there."""
    if isinstance(s, g.Sphere):
        d = np.linalg.norm(x)
        return s.radius - d, x / d if d else np.array([0, 0, 1.0])
    if isinstance(s, g.Capsule):
        p = x - [0, 0, np.clip(x[2], -s.length / 2, s.length / 2)]
        d = np.linalg.norm(p)
        return s.radius - d, p / d if d else np.array([1.0, 0, 0])
    if isinstance(s, g.Box):
        half = np.array(s.size) / 2
        near = np.clip(x, -half, half)
        if np.any(near != x):
            d = np.linalg.norm(x - near)
            return -d, (x - near) / d
        left = half - np.abs(x)
        k = int(np.argmin(left))
        return left[k], np.sign(x[k] or 1.0) * np.eye(3)[k]
    rho = np.hypot(x[0], x[1])
    side = np.array([x[0], x[1], 0]) / rho if rho else np.array([1.0, 0, 0])
    up = np.array([0, 0, np.sign(x[2] or 1.0)])
    out, above = rho - s.radius, abs(x[2]) - s.length / 2
    if out <= 0 and above <= 0:
        return (-out, side) if out > above else (-above, up)
    d = np.hypot(max(out, 0), max(above, 0))
    return -d, (max(out, 0) * side + max(above, 0) * up) / d


def _of_polyhedra(a, A, b, B):
    """By all axes that can separate two convex polyhedra."""
    R, S = A[:3, :3], B[:3, :3]
    x, y = a.vertices @ R.T + A[:3, 3], b.vertices @ S.T + B[:3, 3]
    edges = cross((a.edges @ R.T)[:, None], (b.edges @ S.T)[None]).reshape(-1, 3)
    length = np.linalg.norm(edges, axis=1)
    edges = edges[length > 1e-8] / length[length > 1e-8, None]
    n = np.concatenate([a.faces @ R.T, b.faces @ S.T, edges])
    p, q = x @ n.T, y @ n.T
    ahead, behind = p.max(axis=0) - q.min(axis=0), q.max(axis=0) - p.min(axis=0)
    k, j = int(np.argmin(ahead)), int(np.argmin(behind))
    return (ahead[k], n[k]) if ahead[k] < behind[j] else (behind[j], -n[j])


def _along(n, a, A, b, B):
    """Overlap along a unit vector."""
    far = a.support(A[:3, :3].T @ n) + A[:3, 3] @ n
    return far + b.support(-B[:3, :3].T @ n) - B[:3, 3] @ n


def _of_any(a, A, b, B, starts):
    """By minimisation over directions, from some that are likely, those given, and coal's."""

    def depth(n):
        return _along(n / np.linalg.norm(n), a, A, b, B)

    between = B[:3, 3] - A[:3, 3]
    likely = [*starts, between, *A[:3, :3].T, *B[:3, :3].T, *-A[:3, :3].T, *-B[:3, :3].T]
    best, n = _least(depth, likely)
    known = 0.0
    if best > ENOUGH:
        normals, known = _of_peer(a, A, b, B) if coal else ((), 0.0)
        best, n = _least(depth, [n, *normals])
    for size in (0.3, 0.03, 3e-3, 3e-4):
        if best <= ENOUGH or abs(best - known) <= ENOUGH:
            break
        best, n = _refined(depth, n, best, size)
    return best, n


def _least(depth, directions):
    """The smallest overlap along some directions, and its unit vector."""
    tried = [(depth(n), k) for k, n in enumerate(directions) if np.linalg.norm(n) > 0]
    best, k = min(tried)
    n = np.array(directions[k], dtype=float)
    return best, n / np.linalg.norm(n)


def _of_peer(a, A, b, B):
    """Direction that coal finds, in either sense, and its overlap; they are only a start."""
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    request.gjk_max_iterations = request.epa_max_iterations = 500
    found = coal.DistanceResult()
    poses = [coal.Transform3s(T[:3, :3], T[:3, 3]) for T in (A, B)]
    coal.distance(a.of_peer, poses[0], b.of_peer, poses[1], request, found)
    n = np.asarray(found.normal).ravel()
    fine = np.all(np.isfinite(n)) and np.linalg.norm(n) > 0.5
    return ((n, -n), -found.min_distance) if fine else ((), 0.0)


def _refined(depth, n, best, size):
    """A better direction near ``n``."""
    side = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
    side /= np.linalg.norm(side)
    plane = np.array([side, np.cross(n, side)])
    simplex = size * np.array([[0, 0], [1, 0], [-0.3, 0.9]])
    options = {"initial_simplex": simplex, "xatol": 1e-14, "fatol": 1e-15, "maxfev": 400}
    found = minimize(lambda t: depth(n + t @ plane), [0, 0], method="Nelder-Mead", options=options)
    if found.fun < best:
        new = n + found.x @ plane
        return found.fun, new / np.linalg.norm(new)
    return best, n


# --- uneven ground -------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def field_height(shape: g.HeightField):
    """Heights of the ground, a function of x and y: natural cubic splines, level beyond the rim."""
    z = np.array(shape.heights)
    xs = np.linspace(-shape.size[0] / 2, shape.size[0] / 2, z.shape[0])
    ys = np.linspace(-shape.size[1] / 2, shape.size[1] / 2, z.shape[1])
    once = make_interp_spline(xs, z, k=3, bc_type="natural")
    twice = make_interp_spline(ys, once.c, k=3, axis=1, bc_type="natural")
    surface = NdBSpline((once.t, twice.t), np.moveaxis(twice.c, 0, 1), 3)

    def height(x, y):
        x, y = np.clip(x, xs[0], xs[-1]), np.clip(y, ys[0], ys[-1])
        return surface(np.column_stack([np.ravel(x), np.ravel(y)]))

    return height


def _on_field(a, A, b, B):
    """Depth of a ball or of a polyhedron's corners in uneven ground, which is level at its frame.

    Of a ball the nearest point of the ground is found by minimisation.
    """
    if isinstance(b.shape, g.HeightField):
        depth, n = _on_field(b, B, a, A)
        return depth, -n
    height = field_height(a.shape)
    x = B[:3, 3] - A[:3, 3]
    if isinstance(b.shape, g.Sphere):

        def away(p):
            return np.sqrt((p[0] - x[0]) ** 2 + (p[1] - x[1]) ** 2 + (height(*p)[0] - x[2]) ** 2)

        r = b.shape.radius
        starts = x[:2] + r / 2 * np.array([[0, 0], [1, 1], [-1, 0], [0, -1]])
        options = {"xatol": 1e-12, "fatol": 1e-14, "maxfev": 400}
        found = min((minimize(away, p, method="Nelder-Mead", options=options) for p in starts),
                    key=lambda f: f.fun)  # fmt: skip
        p = np.array([*found.x, height(*found.x)[0]])
        above = x[2] > height(*x[:2])[0]
        n = (x - p) / found.fun * (1 if above else -1)
        return b.shape.radius - (found.fun if above else -found.fun), n
    corners = b.vertices @ B[:3, :3].T + x
    depth = height(corners[:, 0], corners[:, 1]) - corners[:, 2]
    return float(depth.max()), np.array([0, 0, 1.0])
