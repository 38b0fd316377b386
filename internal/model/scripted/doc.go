// Package scripted is a model server for demos, examples and tests: it speaks
// the OpenAI-compatible HTTP API on loopback and answers from a YAML script of
// rules on what the request contains, so that behaviour depends on what was
// delivered to a member, as it does with a real model.
//
// It is reached through the same client as a real model and is as strict: a
// request that OpenAI would refuse is refused here, with the reason.
//
// A script is a list of rules. The first rule that matches answers; if none
// does, the answer is HTTP 400 and names member and step.
//
//	rules:
//	  - member: '^Backend$'        # RE2 on Rollcall-Member; default: everybody
//	    has: ['RE2']               # all must be in the JSON of messages
//	    lacks: ['RE2']             # none may be
//	    times: 0                   # answers at most so often; 0 = always
//	    capture: {key: '(\w+)'}    # last match in the messages; {{key}} below
//	    text: 'bound {{key}}'
//	    tools: [{name: task_update, args: {}}]
//	    delay_ms: 0
//	    finish: stop               # default: tool_calls with tools, else stop
//
// The JSON of messages is compact, as package model encodes it: no spaces
// between its parts, "<" and "&" as they are, quotes inside a text as \". A
// capture gives its first group, or the whole match without one, with one
// level of JSON escapes taken off. A rule whose capture finds nothing is a
// mistake of the script and answered with HTTP 400.
//
// For tests, a rule can also fail or wait:
//
//   - name: first refusal   # shown in records and errors
//     tools: [{name: x, raw: '{"to": "le'}] # arguments that are no JSON
//     reasoning: '…'        # thoughts before the text
//     hold: gate            # waits until Server.Release("gate")
//     status: 429           # an error; text is its message, code its code
//     code: insufficient_quota
//     retry_after: 7        # the header, with status
//     cut: true             # half of the answer, then a clean end
//     reset: true           # half of the answer, then a broken connection
//
// Read next: script.go, match.go, server.go.
package scripted
