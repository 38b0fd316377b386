package cli

import "testing"

func TestNameOf(t *testing.T) {
	for objective, want := range map[string]string{
		"Make the profile page with Backend.": "make-the-profile-page",
		"  Hi!  ":                             "hi",
		"设计一个网页":                              "设计一个网页",
		"日本語を学ぶための計画を立ててくださいそして毎日の練習も考えてくださいね": "日本語を学ぶための計画を立ててくださいそして毎日の練習も考えてく",
		"…?!": "",
		"internationalization-of-everything at once": "internationalization-of",
	} {
		if got := nameOf(objective); got != want {
			t.Errorf("%q gives %q, want %q", objective, got, want)
		}
	}
}
