package main

// table is what is broken, one at a time.
var table = []mutant{}
