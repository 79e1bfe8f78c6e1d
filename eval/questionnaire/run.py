"""The questionnaire of a benchmark: its forms, and the agreement of the answers."""

import dataclasses
from pathlib import Path

from rich.console import Console

from eval.benchmarks.generated.vocabulary import resolved
from eval.benchmarks.load import load_benchmark
from eval.config import QuestionnaireCommand
from eval.questionnaire.agreement import agreement, agreement_table
from eval.questionnaire.answers import counted, read_answers
from eval.questionnaire.forms import deal, form_page, minutes, read_texts
from pairscale.command.schemas import listed
from pairscale.console import say
from pairscale.errors import ConfigError, InputError
from pairscale.files import write_text
from pairscale.tables import print_table


def run(config: QuestionnaireCommand) -> None:
    """Write the forms, or with `people` print how far the people agree who answered them.

    Raises InputError in the folder of another questionnaire, and what the functions raise that it calls.
    """
    settings = config.questionnaire
    if not config.benchmark.has_pairs:
        raise ConfigError(f"benchmark={config.benchmark.name}: a diagnostic has no pairs for people to choose from.")
    benchmark = load_benchmark(
        resolved(config.benchmark, dataclasses.asdict(config), config.paths.runs, config.paths.store)
    )
    if config.people:
        answers = read_answers(listed(config.people))
        judgements, notes = counted(answers, benchmark.name, benchmark.digest, benchmark.pairs, settings)
        print_table(Console(), agreement_table(benchmark.name, agreement(judgements), settings.threshold))
        for note in notes:
            say(note, "note", "yellow")
        return
    language = settings.language or config.benchmark.language
    texts = read_texts(settings, language)
    forms = deal(benchmark, settings, texts["checks"])
    for number, questions in enumerate(forms, start=1):
        name = f"form-{number:0{len(str(len(forms)))}d}"
        page = form_page(name, questions, benchmark, texts, language or "und", config.benchmark.language or "")
        path = Path(settings.folder, f"{name}.html")
        if path.exists() and path.read_text(encoding="utf-8") != page:
            raise InputError(
                f"{path}: this is of another questionnaire, which people may be answering. Give "
                "questionnaire.folder=NEW."
            )
        write_text(path, page)
    longest = max(map(len, forms))
    written = f"{benchmark.name}: {len(forms)} forms of up to {longest} questions ({minutes(longest)} minutes)"
    Console(markup=False, soft_wrap=True, highlight=False).print(f"{written} in {settings.folder}")
    if not texts["contact"]:
        say("The forms don't say whom people can ask: give questionnaire.texts=FILE with a contact.", "note", "yellow")
