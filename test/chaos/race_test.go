//go:build race

package chaos_test

// raced: these tests run with the race detector, and so shall the nodes.
var raced = []string{"-race"}
