package domain_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Elsewhere the answer to one question was taken for the answer to another.
// Three questions, to one member or to three, are answered in every order, with
// other words between and a restart after each: each ends with its own answer.
func TestB04RepliesThatCross(t *testing.T) {
	for _, askedOf := range [][]string{{"m2", "m2", "m2"}, {"m2", "m3", "m4"}} {
		for _, order := range permutations(3) {
			t.Run(fmt.Sprint(askedOf, order), func(t *testing.T) {
				k := team(t, "A", "B", "C", "D")
				k.Do(domaintest.Say("m1", "find out"))
				var asks []*rollcallv1.ToolCall
				for i, id := range askedOf {
					asks = append(asks, domaintest.Call("send_message", args{"to": k.Member(id).Name, "text": fmt.Sprintf("question %d?", i), "wait_for_reply": true}))
				}
				k.Act("m1", asks...)
				open := waitsOf(k)
				mustEqual(t, "questions", len(open), 3)
				questions := slices.Clone(open)
				reply := func(from, to, question string, ended ...string) {
					t.Helper()
					if k.Member(from).Run == nil {
						k.Do(domaintest.Say(from, "go on"))
					}
					events := k.Events(from, domaintest.Call("send_message", args{"to": to, "text": "an answer", "reply_to": question}))
					var got []string
					for _, e := range events {
						if w := e.GetWaitEnded(); w != nil && w.GetMember() == "m1" {
							got = append(got, w.GetMessage()+" "+w.GetReason())
						}
					}
					mustBe(t, "ended by a reply to "+question, got, ended)
				}
				for n, i := range order {
					answered := questions[i]
					// Words that are near and answer nothing.
					reply(askedOf[i], "A", "msg1")
					reply(askedOf[i], "Lead", answered)
					k.Do(domaintest.Say("m1", "the operator speaks")) // A did not ask him
					mustBe(t, "open", waitsOf(k), open)
					reply(askedOf[i], "A", answered, answered+" replied")
					open = slices.DeleteFunc(open, func(q string) bool { return q == answered })
					mustBe(t, "open", waitsOf(k), open)
					reply(askedOf[i], "A", answered) // said again it ends nothing more
					for k.Member("m1").Run != nil {
						k.Rests("m1")
					}
					k.Restart()
					mustBe(t, "open after a restart", waitsOf(k), open)
					want := isWaiting
					if n == 2 {
						want = isIdle
					}
					mustEqual(t, "A", k.Member("m1").Status, want)
				}
			})
		}
	}
	t.Run("of each other", func(t *testing.T) {
		k := team(t, "A", "B")
		k.Do(domaintest.Say("m1", "ask"), domaintest.Say("m2", "ask"))
		k.Acts("m1", "send_message", args{"to": "B", "text": "your colour?", "wait_for_reply": true})
		k.Acts("m2", "send_message", args{"to": "A", "text": "your size?", "wait_for_reply": true})
		toB, toA := question(k), k.Member("m2").Waits
		k.Rests("m1") // both were woken by the other's question, which is no answer
		mustEqual(t, "A", k.Member("m1").Status, isWaiting)
		mustEqual(t, "B", len(toA), 1)
		k.Do(domaintest.Say("m1", "go on"))
		k.Acts("m1", "send_message", args{"to": "B", "text": "large", "reply_to": toA[0].Message})
		mustEqual(t, "B's questions", len(k.Member("m2").Waits), 0)
		mustEqual(t, "A's question", question(k), toB)
	})
}

func waitsOf(k *domaintest.Kit) (open []string) {
	for _, w := range k.Member("m1").Waits {
		open = append(open, w.Message)
	}
	return open
}

func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}

// Elsewhere a member waited for the answer of one who could not give it any
// more. Whatever befalls the one who was asked, whether it has read the question
// or not, somebody is told at once, in the same commit, with a reason of its
// own, and only once.
func TestB10NobodyCanAnswer(t *testing.T) {
	reasons := map[string]string{}
	for _, fate := range fates {
		for _, read := range []bool{true, false} {
			if fate.whenRead && !read {
				continue
			}
			t.Run(fmt.Sprint(fate.name, ", read ", read), func(t *testing.T) {
				k := team(t, "A", "B")
				k.Do(domaintest.Say("m1", "find out"), domaintest.Say("m2", "be at work"))
				k.Acts("m1", "send_message", args{"to": "B", "text": "which region?", "wait_for_reply": true})
				q := question(k)
				if read {
					k.Acts("m2", "task_list", args{})
					mustEqual(t, "read", k.Member("m1").Waits[0].Read, true)
				}
				events := fate.strikes(t, k)
				told := slices.DeleteFunc(domaintest.Delivered(events, ""), func(m *rollcallv1.MessageDelivered) bool { return m.GetAbout() != q })
				if len(told) != 1 || told[0].GetTo() != fate.told {
					t.Fatalf("told: %v, want one message to %s", told, fate.told)
				}
				reason := told[0].GetBody().GetText()
				mustContain(t, "reason", reason, append(fate.words, q)...)
				if other := reasons[reason]; other != "" && other != fate.name {
					t.Fatalf("%s and %s give one reason: %s", fate.name, other, reason)
				}
				reasons[reason] = fate.name
				mustEqual(t, "whoever is told works", k.Member(fate.told).Status, isWorking)
				// Told once, also after whoever was told came to rest, and again
				// after a restart.
				k.Restart()
				again := append(k.Ends(fate.told, "I see"), k.Do(domaintest.Alert("m1", "are you there?"))...)
				again = append(again, k.Ends("m1", "I am")...)
				for _, m := range domaintest.Delivered(again, "") {
					if m.GetAbout() == q {
						t.Fatalf("told again: %v", m)
					}
				}
			})
		}
	}
	t.Run("dissolved with the one who asks", func(t *testing.T) {
		k := asking(t)
		events := k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_DissolveTeam{DissolveTeam: &rollcallv1.DissolveTeam{}}})
		mustEqual(t, "waits ended", domaintest.Count(events, "WaitEnded"), 1)
		mustEqual(t, "A", k.Member("m1").Status, isShutdown)
		mustEqual(t, "waits", len(k.Member("m1").Waits), 0)
	})
	t.Run("the Lead stopped by hand stays stopped", func(t *testing.T) {
		k := team(t, "A")
		k.Do(domaintest.Say("m1", "ask"))
		k.Acts("m1", "send_message", args{"to": "Lead", "text": "may I?", "wait_for_reply": true})
		k.Do(interrupt("lead"))
		mustEqual(t, "Lead", k.Member("lead").Status, isIdle)
		mustEqual(t, "exit", k.State.Verdict().Exit, 6)
	})
}

// fate is what befalls B, who was asked.
type fate struct {
	name string
	// told is who hears of it, words are in the reason.
	told  string
	words []string
	// whenRead: it means something only when the question was read.
	whenRead bool
	strikes  func(*testing.T, *domaintest.Kit) []*rollcallv1.Event
}

var fates = []fate{
	{name: "its model fails", told: "m1", words: []string{"B failed", "model-key-refused"}, strikes: func(_ *testing.T, k *domaintest.Kit) []*rollcallv1.Event {
		return k.Do(k.ModelFails("m2", "model-key-refused", false))
	}},
	{name: "its step crashes", told: "m1", words: []string{"B failed", "step-crashed"}, strikes: func(_ *testing.T, k *domaintest.Kit) []*rollcallv1.Event {
		return k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_FailRun{FailRun: &rollcallv1.FailRun{Member: "m2", Run: k.Member("m2").Run.ID, Code: "step-crashed", Error: "boom"}}})
	}},
	{name: "it says nothing", told: "m1", words: []string{"B failed", "reply-empty"}, strikes: func(_ *testing.T, k *domaintest.Kit) []*rollcallv1.Event {
		return append(k.Do(k.Reply("m2", "")), k.Do(k.Reply("m2", ""))...)
	}},
	{name: "its replies are cut off", told: "m1", words: []string{"B failed", "reply-cut"}, strikes: func(_ *testing.T, k *domaintest.Kit) []*rollcallv1.Event {
		return append(k.Do(k.ReplyFinish("m2", "length", "ha")), k.Do(k.ReplyFinish("m2", "length", "ha"))...)
	}},
	{name: "it is lost again and again", told: "m1", words: []string{"B failed", "too-many-resumes"}, strikes: func(_ *testing.T, k *domaintest.Kit) (events []*rollcallv1.Event) {
		for k.Member("m2").Run != nil {
			events = append(events, k.Do(resumeRun(k, "m2"))...)
		}
		return events
	}},
	{name: "it is removed", told: "m1", words: []string{"B was shut down"}, strikes: func(_ *testing.T, k *domaintest.Kit) []*rollcallv1.Event {
		k.Do(domaintest.Say("", "remove B"))
		return k.Events("lead", domaintest.Call("team_member_remove", args{"name": "B"}))
	}},
	{name: "it is interrupted by hand", told: "lead", words: []string{"A waits for B", "interrupted"}, strikes: func(_ *testing.T, k *domaintest.Kit) []*rollcallv1.Event {
		return k.Do(interrupt("m2"))
	}},
	{name: "its budget is used up", told: "lead", words: []string{"A waits for B", "budget"}, strikes: func(t *testing.T, k *domaintest.Kit) (events []*rollcallv1.Event) {
		t.Helper()
		for range 60 {
			if k.Member("m2").Run == nil {
				return events
			}
			events = append(events, k.Events("m2", domaintest.Call("task_list", args{}))...)
		}
		t.Fatal("B has no bound")
		return nil
	}},
	{name: "it rests without an answer", told: "lead", words: []string{"A waits for B", "rests without answering"}, whenRead: true, strikes: func(_ *testing.T, k *domaintest.Kit) []*rollcallv1.Event {
		return k.Ends("m2", "I do not know")
	}},
	{name: "it asks back", told: "lead", words: []string{"A waits for B", "a circle"}, whenRead: true, strikes: func(_ *testing.T, k *domaintest.Kit) []*rollcallv1.Event {
		k.Acts("m2", "send_message", args{"to": "A", "text": "you tell me", "wait_for_reply": true})
		return k.Ends("m1", "no, you")
	}},
}
