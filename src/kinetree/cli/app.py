"""The commands and their common options."""

from typing import Annotated

import typer

import kinetree
from kinetree.cli import (
    bench,
    convert,
    demo,
    evaluate,
    generate,
    info,
    robots,
    simulate,
    view,
    warm_up,
)
from kinetree.cli.options import Commands, examples, flag

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="First steps:\n"
    "  kinetree info panda            draw a robot that ships with the package\n"
    "  kinetree view panda            see it move in the browser\n"
    "  kinetree check robot.urdf      examine yours\n"
    "  kinetree info --help           every command explains itself, with examples\n"
    "Exit codes: 0 done; 1 the answer is no, or could not be computed; 2 used wrongly.",
)


def _add(name, command, *lines):
    """Register a command with its examples."""
    app.command(name, epilog=examples(*lines))(command)


_add(
    "info",
    info.info,
    "kinetree info panda",
    "kinetree info robot.urdf --floating",
    "kinetree info robot.urdf --json",
)
_add(
    "check",
    convert.check,
    "kinetree check robot.urdf",
    "kinetree check robot.urdf --strict --json > report.json",
)
_add(
    "convert",
    convert.convert,
    "kinetree convert robot.urdf robot.xml",
    "kinetree convert panda panda.toml",
)
_add(
    "eval",
    evaluate.evaluate,
    "kinetree eval gravity_force panda --q home",
    "kinetree eval pose panda --of tool --q 0,0.5,0,-2,0,2,0,0,0 --table",
    "kinetree eval forward_dynamics double_pendulum --q random:1 --tau 5,0",
    """echo '{"q": [0, 1], "qd": [1, 0]}' | kinetree eval bias_force double_pendulum -""",
)
_add(
    "simulate",
    simulate.simulate,
    "kinetree simulate double_pendulum --q 2,0.5 --duration 10 --plot swing.png",
    "kinetree simulate panda --q home --controller gravity --out motion.npz",
    "kinetree simulate robot.urdf --q random:3 --controller pd --goal neutral",
    "kinetree simulate robot.urdf --floating --ground -0.5 --out drop.npz",
)
_add(
    "plot",
    view.plot,
    "kinetree plot motion.npz",
    "kinetree plot motion.npz --joints shoulder,elbow -o arm.pdf",
)
_add(
    "view",
    view.view,
    "kinetree view panda",
    "kinetree view robot.urdf --q home --show frames,center",
    "kinetree view motion.npz --out motion.html --out motion.mp4",
)
_add(
    "robots",
    robots.robots,
    "kinetree robots",
    "kinetree robots ur5",
    "kinetree info robots:ur5",
)
_add("demo", demo.demo, "kinetree demo", "kinetree demo --out pictures")
_add(
    "generate",
    generate.generate,
    "kinetree generate panda -o panda_c",
    "kinetree generate robot.urdf -F inverse_dynamics -F jacobian:tool:world -o code",
    "kinetree generate double_pendulum -F mass_matrix --numpy",
)
_add(
    "bench", bench.bench, "kinetree bench panda", "kinetree bench robot.urdf --batch 1 --batch 4096"
)
_add("warm-up", warm_up.warm_up, "kinetree warm-up")
app.add_typer(convert.samples_app, name="samples")
app.add_typer(generate.cache_app, name="cache")


def _print_version(wanted: bool):
    """Print the version and exit, if ``wanted``."""
    if wanted:
        typer.echo(f"kinetree {kinetree.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, flag("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, flag("--debug", help="Show tracebacks of errors.", envvar="KINETREE_DEBUG")
    ] = False,
):
    """Rigid-body dynamics of robots: look at them, examine them, compute, convert, compile."""
