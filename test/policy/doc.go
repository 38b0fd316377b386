// Package policy holds the rules of this repository as tests: who may import
// whom, how large a file may grow, that every package says what it is, that
// no test sleeps, that every error code is documented, that every acceptance
// case has a test. Each rule stands in a table with its reason; to change a
// rule, change its row.
//
// It has no code of its own besides its tests.
package policy
