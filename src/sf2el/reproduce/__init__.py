"""The paper's experiments: readings, runner, tables, figures."""
