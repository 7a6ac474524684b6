"""The five-minute tour: what ``make demo`` and ``kinetree demo`` run."""

from pathlib import Path

from kinetree.cli.demo import demo

OUT = Path(__file__).resolve().parent.parent / "out"


def main(out=OUT, seconds=6.0):
    demo(out, seconds)


if __name__ == "__main__":
    main()
