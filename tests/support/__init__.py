"""What tests share: data, attacks, forgeries; functions that check are called assert_..."""
