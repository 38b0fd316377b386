// Package nearest finds the names that somebody may have meant.
package nearest

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// longest is the number of bytes of a name that are compared.
const longest = 128

// To returns up to n of the given names that are nearest to want, best first.
// A name counts as near when it is equal but for case, ends in the same path
// element, or differs in at most a third of its characters.
func To(want string, names []string, n int) []string {
	type candidate struct {
		name  string
		score int
	}
	folded := fold(want)
	var found []candidate
	for _, name := range names {
		other := fold(name)
		limit := max(1, max(len(folded), len(other))/3)
		score := limit + 1
		if path.Base(string(folded)) == path.Base(string(other)) {
			score = 0
		} else if diff := len(folded) - len(other); diff <= limit && -diff <= limit {
			if d := distance(folded, other); d < len(folded) { // something must be alike
				score = d
			}
		}
		if score <= limit {
			found = append(found, candidate{name, score})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name))
	})
	near := make([]string, 0, n)
	for _, c := range found[:min(n, len(found))] {
		near = append(near, c.name)
	}
	return near
}

func fold(s string) []rune {
	s = strings.ToLower(s)
	return []rune(s[:min(len(s), longest)])
}

// distance counts the characters to insert, drop, replace or swap.
func distance(a, b []rune) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
