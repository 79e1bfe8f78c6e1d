"""The section of a study with interventions: its exhibits and where they stand on the page."""

from analysis.sections.ablations.exhibits import ablations as ablations
