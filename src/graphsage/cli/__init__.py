"""What a person types. Thin commands; everything heavy is imported inside them, so that help answers at once."""
