package config

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
)

func readLimits(text string) (domain.Limits, error) {
	s := &Settings{File: "rollcall.yaml", origins: map[string]string{}}
	err := s.readFile([]byte(text), Sources{})
	return s.Limits, err
}

func TestLimits(t *testing.T) {
	got, err := readLimits(`limits:
  members: 5
  tasks: 0
  steps: 7
  calls: 8
  reports: 9
  runs: -1
  all_runs: 11
  idle_hops: off
  identical_calls: 13
  depth: 14
  member_tokens: 3000000000
  team_tokens: -1
  member_money: 1.50
  team_money: 20
`)
	want := domain.Limits{
		Members: 5, Steps: 7, Calls: 8, Reports: 9, Runs: domain.Off, AllRuns: 11, IdleHops: domain.Off, IdenticalCalls: 13, Depth: 14,
		MemberTokens: 3_000_000_000, TeamTokens: domain.Off, MemberCost: 1_500_000, TeamCost: 20_000_000,
	}
	if err != nil || got != want {
		t.Fatalf("%+v %v, want %+v", got, err, want)
	}
	for text, part := range map[string]string{
		"limits: {members: -2}":        "1:19: members is \"-2\"",
		"limits: {members: many}":      "members is \"many\"",
		"limits: {members: 1000001}":   "1000001",
		"limits: {members: 1.5}":       "members is \"1.5\"",
		"limits: {members: [1]}":       "members is",
		"limits: {menbers: 1}":         "menbers",
		"limits: 5":                    "limits is",
		"limits: {member_money: much}": "member_money",
	} {
		if _, err := readLimits(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q", text, err, part)
		}
	}
}
