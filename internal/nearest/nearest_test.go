package nearest

import (
	"slices"
	"testing"
)

func TestTo(t *testing.T) {
	names := []string{"Backend/api/profile.json", "notes.md", "file_read", "file_write", "Backend", "Frontend", "語言", "A"}
	for _, c := range []struct {
		want string
		near []string
	}{
		{"profile.json", []string{"Backend/api/profile.json"}},
		{"backend", []string{"Backend"}},
		{"note.md", []string{"notes.md"}},
		{"file_raed", []string{"file_read"}},
		{"file_write", []string{"file_write"}},
		{"語言", []string{"語言"}},
		{"語語", []string{"語言"}},
		{"X", []string{}},
		{"nothing at all like it", []string{}},
		{"", []string{}},
	} {
		if got := To(c.want, names, 2); !slices.Equal(got, c.near) {
			t.Errorf("To(%q) = %q, want %q", c.want, got, c.near)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"same", "same", 0}} {
		if got := distance([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
