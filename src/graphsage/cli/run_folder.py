"""The folder of a training run: whether there is room for it, and whose the run is that lies there.

An old run is removed when the new one makes its first step, so a start that is refused or killed leaves it as it was.
"""

from dataclasses import dataclass
from pathlib import Path

from graphsage.atomic import writing
from graphsage.cli.opening import holds_run
from graphsage.errors import ConfigError, OutputError

CHECKPOINT = "checkpoint.safetensors"
RUN_FILES = (
    "config.json",
    "model.safetensors",
    "features.json",
    "features.safetensors",
    CHECKPOINT,
    "log.jsonl",
    "run.toml",
)
DATA_FOLDER = "data"  # the graph that the run keeps; `train` replaces it (inference.run_data)
JOB_FILE = ".job.part"  # which job began the run; named as what a killed process leaves behind


@dataclass(frozen=True)
class RunFolder:
    path: Path
    resume: bool
    overwrite: bool

    def check(self) -> None:
        """Refuse a folder that holds something else, or a run about which nothing was said."""
        if self.resume and self.overwrite:
            raise ConfigError("--resume continues the run and --overwrite removes it; give one of them")
        if self.resume or not self.path.is_dir():
            return
        if holds_run(self.path):
            if not self.overwrite:
                raise OutputError(
                    f"{self.path} already holds a run; continue it with --resume, replace it with "
                    "--overwrite, or choose another --out"
                )
        elif others := sorted(path.name for path in self.path.iterdir() if not _ours(path)):
            raise OutputError(f"{self.path} is not empty (it holds {others[0]}) and is not a run; choose another --out")

    def resumes(self, job: str | None, restarts: int) -> bool:
        """Whether to resume: where that was asked for, and where a lost rank has ended what this job had begun."""
        if restarts and job is not None and self._begun_by() == job:
            return (self.path / CHECKPOINT).exists()
        self.check()
        return self.resume

    def begin(self, job: str | None, resumed: bool) -> None:
        """Just before the first step."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            for name in () if resumed else RUN_FILES:
                (self.path / name).unlink(missing_ok=True)
            if job is not None:
                (self.path / JOB_FILE).write_text(job, encoding="utf-8")

    def end(self) -> None:
        """When nobody will start the job again."""
        (self.path / JOB_FILE).unlink(missing_ok=True)

    def _begun_by(self) -> str | None:
        try:
            return (self.path / JOB_FILE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def _ours(path: Path) -> bool:
    """A run's file, its data, or what a killed process left of one."""
    name = path.name
    return name in RUN_FILES or _is_data(path) or (name.startswith(".") and ".part" in name)


def _is_data(path: Path) -> bool:
    """Whether a run wrote this folder: a user's folder of the same name is never replaced."""
    return path.name == DATA_FOLDER and (path / "data.json").is_file() and (path / "split.arrow").is_file()
