//go:build !race

package chaos_test

// raced: these tests run without the race detector, and so do the nodes.
var raced []string
