# pytest, filled below
