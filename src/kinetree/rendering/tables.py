"""Records of the renderer: surfaces, a view of them, and the memory of one picture."""

from kinetree.codegen.procedures import record

TILE = 32  # pixels along a side; samples of a tile stay in the cache of a core
PIXELS = TILE * TILE

# Columns of ``Surfaces.part``
NODE, VERTEX, VERTICES, FACE, FACES, KIND, GROUP = range(7)
# Kinds of parts
OPEN, CLOSED, PLANE = range(3)
# Columns of ``Work.bounds``
LEFT, RIGHT, TOP, BOTTOM = range(4)
# Numbers of a triangle in ``Work.linear``: three edges, then the inverse depth, each as the change
# from sample to sample to the right and downwards, and the value at the first sample
DEPTH, NUMBERS = 9, 12


@record
class Surfaces:
    """Triangles in the coordinates of the nodes that they are fixed to.

    Attributes:
        parts: number of parts.
        part: node, first vertex and number of vertices, first face and number of faces, kind
            (open, closed, or a plane) and group (0 is opaque, others are blended in order).
        casts: whether each part casts a shadow.
        color: of each part.
        grid: of each part that is a plane: distance of the lines, and that at which it fades [m].
        box: least and largest coordinates of each part [m].
        vertex: corners [m]; of a plane its origin and the ends of unit vectors along x and y.
        normal: unit normals at the corners.
        face: triangles, counter-clockwise from outside.
        owner: part of each face.
        groups: number of groups, the opaque one among them.
        opacity: of each group.
        shines: whether each group is seen through what is in front.
    """

    parts: int
    part: "int[:, 7]"
    casts: "int[:]"
    color: "float[:, 3]"
    grid: "float[:, 2]"
    box: "float[:, 6]"
    vertex: "float[:, 3]"
    normal: "float[:, 3]"
    face: "int[:, 3]"
    owner: "int[:]"
    groups: int
    opacity: "float[:]"
    shines: "int[:]"


@record
class View:
    """A camera, or the sun, whose rays are parallel.

    Attributes:
        eye: its position [m].
        axes: rows: to the right, upwards, towards the eye.
        width: columns of the picture.
        height: rows of the picture.
        samples: along each side of a pixel.
        pixel: side of a pixel at unit distance; of parallel rays [m].
        near: distance of what is nearest [m]; of parallel rays, of what is farthest.
        parallel: whether rays are parallel.
    """

    eye: "float[3]"
    axes: "float[3, 3]"
    width: int
    height: int
    samples: int
    pixel: float
    near: float
    parallel: bool


@record
class TileWork:
    """Triangles as they are seen by a view, and in which tiles.

    Attributes:
        seen: number of triangles that may be seen.
        face: numbers of their faces; -1 - part for a plane.
        linear: edges and inverse depth as linear functions of samples.
        bounds: first and last column and row of their samples.
        tiles: first and last column and row of their tiles.
        corner: corners in the coordinates of the view.
        first: where the triangles of each tile begin, and the end of the last.
        entry: numbers of triangles, one tile after the other.
        room: length of ``entry``.
    """

    seen: int
    face: "int[:]"
    linear: "float[:, 12]"
    bounds: "int[:, 4]"
    tiles: "int[:, 4]"
    corner: "float[:, 3]"
    first: "int[:]"
    entry: "int[:]"
    room: int


@record
class TileMemory:
    """Memory of one thread: samples of a tile, and colours of its pixels.

    Attributes:
        near: inverse depths of the samples; zero is infinitely far.
        face: triangle of each sample; -1 for none.
        near_clear: the same of a translucent group.
        face_clear: the same of a translucent group.
        color: of the pixels.
    """

    near: "float[:]"
    face: "int[:]"
    near_clear: "float[:]"
    face_clear: "int[:]"
    color: "float[3, PIXELS]"


@record
class Light:
    """The sun, the sky, and the shadows.

    Attributes:
        sun: direction towards the sun.
        shine: half way between the sun and the eye.
        up: away from the ground.
        shadow: how much of the sun a shadow takes away; 0 for no shadows.
        size: columns and rows of the map of shadows.
        map: nearness to the sun of what is first in its light.
        face: triangle that it is.
        scale: texels per metre.
        bias: least difference of nearness that counts.
    """

    sun: "float[3]"
    shine: "float[3]"
    up: "float[3]"
    shadow: float
    size: int
    map: "float[:]"
    face: "int[:]"
    scale: float
    bias: float


@record
class Ground:
    """Ground that is drawn behind everything: it hides nothing, or is a plane of the surfaces.

    Attributes:
        drawn: whether there is one.
        part: the plane, which hides what is below; -1 for none.
        normal: upwards, out of the ground.
        color: between the lines.
        lines: their colour.
        height: along the normal [m].
        along: unit vectors in the ground, rows.
        step: distance of its lines [m].
        reach: distance at which it has faded [m].
        middle: from where that is measured.
    """

    drawn: bool
    part: int = -1
    normal: "float[3]"
    color: "float[3]"
    lines: "float[3]"
    height: float
    along: "float[2, 3]"
    step: float
    reach: float
    middle: "float[3]"


@record
class Images:
    """Results, rows from the top: bytes of colours, depths [m], numbers of parts if wanted."""

    color: "int[:]"
    depth: "float[:]"
    part: "int[:]"
    wants_parts: bool


@record
class Shot:
    """All that a picture is made of.

    Attributes:
        surfaces: what there is.
        poses: of the nodes, rows of matrices (3, 4); NaN hides what is on a node.
        view: the camera.
        light: the sun.
        sun: view of the map of shadows.
        ground: what is drawn of it.
        work: what is seen.
        images: results.
    """

    surfaces: Surfaces
    poses: "float[:, 12]"
    view: View
    light: Light
    sun: View
    ground: Ground
    work: TileWork
    images: Images
