"""Files to stored passages: read, cut, checked, and upserted file by file."""
