package chaos_test

import "strings"

// script is what the models do: workScript, and before it what holds at a step of
// its own for each of the words.
func script(words ...string) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, word := range words {
		b.WriteString(strings.ReplaceAll(slowRules, "WORD", word))
	}
	b.WriteString(dragonRules)
	b.WriteString(workRules)
	return b.String()
}

// slowRules are three steps, each a file, of which the third stays with the model
// until the test releases the hold of that word.
const slowRules = `  - name: WORD 1
    member: '^Lead$'
    has: [Take it WORD]
    lacks: ['first.txt']
    tools: [{name: file_write, args: {path: first.txt, content: one}}]
  - name: WORD 2
    member: '^Lead$'
    has: [Take it WORD]
    lacks: ['second.txt']
    tools: [{name: file_write, args: {path: second.txt, content: two}}]
  - name: WORD 3
    member: '^Lead$'
    has: [Take it WORD]
    lacks: ['third.txt']
    hold: WORD
    tools: [{name: file_write, args: {path: third.txt, content: three}}]
  - {name: WORD done, member: '^Lead$', has: [Take it WORD], text: Done.}
`

// workRules: "Fly a kite" makes a team with tasks that
// depend on each other, a question that is waited on, files and a report; any
// other conversation has a Lead that notes what it is told.
const workRules = `  - name: team
    member: '^Lead$'
    has: [Fly a kite]
    lacks: ['"name":"team_create","arguments"']
    delay_ms: 60
    tools:
      - {name: team_create, args: {name: kite}}
      - {name: team_member_add, args: {name: Ana, initial_prompt: Make the frame.}}
      - {name: team_member_add, args: {name: Ben, initial_prompt: Sew the sail.}}
      - {name: task_create, args: {title: frame, description: Make it., owner: Ana}}
      - {name: task_create, args: {title: sail, description: Sew it., owner: Ben, dependencies: [t1]}}
  - {name: flies, member: '^Lead$', has: [Fly a kite, the kite flies], delay_ms: 60, text: The kite flies.}
  - {name: at it, member: '^Lead$', has: [Fly a kite], delay_ms: 60, text: They are at it.}
  - name: begin
    member: '^Ana$'
    lacks: ['"name":"file_write","arguments"']
    delay_ms: 100
    tools:
      - {name: task_update, args: {task_id: t1, owner: Ana, status: in_progress}}
      - {name: file_write, args: {path: frame.txt, content: two sticks}}
  - name: ask
    member: '^Ana$'
    lacks: ['"name":"send_message","arguments"']
    delay_ms: 100
    tools: [{name: send_message, args: {to: Ben, text: How wide?, wait_for_reply: true}}]
  - name: framed
    member: '^Ana$'
    has: [one metre]
    lacks: ['"name":"task_complete","arguments"']
    delay_ms: 100
    tools: [{name: task_complete, args: {task_id: t1, result: the frame is made, paths: [frame.txt]}}]
  - {name: ana rests, member: '^Ana$', delay_ms: 40, text: That was all.}
  - name: answer
    member: '^Ben$'
    has: ['from=\\"Ana\\"']
    lacks: ['"name":"send_message","arguments"']
    capture: {question: 'id=\\"(msg\d+)\\" from=\\"Ana\\"'}
    delay_ms: 100
    tools: [{name: send_message, args: {to: Ana, text: one metre, reply_to: '{{question}}'}}]
  - name: look
    member: '^Ben$'
    has: [the frame is made]
    lacks: ['"name":"file_read","arguments"']
    delay_ms: 100
    tools:
      - {name: task_update, args: {task_id: t2, owner: Ben, status: in_progress}}
      - {name: file_read, args: {path: Ana/frame.txt}}
  - name: sew
    member: '^Ben$'
    has: [two sticks]
    lacks: ['"name":"task_complete","arguments"']
    delay_ms: 100
    tools:
      - {name: file_write, args: {path: sail.txt, content: a red sail}}
      - {name: task_complete, args: {task_id: t2, result: sewn, paths: [sail.txt]}}
      - {name: send_message, args: {to: lead, text: the kite flies}}
  - {name: ben rests, member: '^Ben$', delay_ms: 40, text: Ready.}
  - {name: noted, member: '^Lead$', delay_ms: 80, text: Noted.}
`
