"""A knowledge base: a folder of Markdown and text files, cut into passages and searched by questions."""
