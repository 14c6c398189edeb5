"""What a pipeline comes to before it runs: who reads whom, which columns, what is wrong."""
