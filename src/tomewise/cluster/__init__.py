"""Several machines for our own work: workers on Ray that embed and ask, while one process reads and writes the tome."""
