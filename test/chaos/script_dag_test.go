package chaos_test

// dragonRules: "Fly a dragon" makes a team with assignments. Dora asks the Lead
// and waits, Eli builds on what she delivers; then both are revised, one after the
// other, and the Lead dissolves the team. The newest that the Lead was told comes
// first: the operator's word may interrupt it anywhere.
const dragonRules = `  - name: accept the dragon
    member: '^Lead$'
    has: [Fly a dragon, the dragon is large]
    lacks: ['"name":"team_dissolve","arguments"']
    delay_ms: 60
    tools: [{name: team_dissolve, args: {}}]
  - {name: dragon flies, member: '^Lead$', has: [Fly a dragon, the dragon is large], delay_ms: 60, text: The dragon flies.}
  - name: revise Eli
    member: '^Lead$'
    has: [Fly a dragon, the frame is wide]
    lacks: ['"name":"team_replan","arguments"']
    delay_ms: 60
    tools: [{name: team_replan, args: {operations: [{op: revise, name: Eli, brief: Sew it anew.}]}}]
  - {name: eli at it, member: '^Lead$', has: [Fly a dragon, the frame is wide], delay_ms: 60, text: It is sewn anew.}
  - name: revise Dora
    member: '^Lead$'
    has: [Fly a dragon, the dragon is small]
    lacks: ['"name":"team_replan","arguments"']
    delay_ms: 60
    tools: [{name: team_replan, args: {operations: [{op: revise, name: Dora, brief: Make a wide frame.}], atomic: true}}]
  - {name: dora at it, member: '^Lead$', has: [Fly a dragon, the dragon is small], delay_ms: 60, text: The frame is made anew.}
  - name: answer Dora
    member: '^Lead$'
    has: [Fly a dragon, 'from=\\"Dora\\"']
    lacks: ['"name":"team_send_message","arguments"']
    capture: {question: 'id=\\"(msg\d+)\\" from=\\"Dora\\"'}
    delay_ms: 60
    tools: [{name: team_send_message, args: {to: Dora, text: one metre wide, reply_to: '{{question}}'}}]
  - name: dragon team
    member: '^Lead$'
    has: [Fly a dragon]
    lacks: ['Dora']
    delay_ms: 60
    tools:
      - name: team_create
        args: {goal: A dragon., members: [{name: Eli, brief: Sew the sail., depends_on: [Dora]}, {name: Dora, brief: Make the frame.}]}
  - {name: dragon at it, member: '^Lead$', has: [Fly a dragon], delay_ms: 60, text: They are at it.}
  - name: dora wide
    member: '^Dora$'
    has: [Make a wide frame]
    delay_ms: 100
    tools:
      - {name: file_write, args: {path: wide.txt, content: four sticks}}
      - {name: complete, args: {summary: the frame is wide, paths: [wide.txt]}}
  - name: dora narrow
    member: '^Dora$'
    has: [one metre wide]
    delay_ms: 100
    tools:
      - {name: file_write, args: {path: narrow.txt, content: two sticks}}
      - {name: complete, args: {summary: the frame is narrow, paths: [narrow.txt]}}
  - name: dora asks
    member: '^Dora$'
    delay_ms: 100
    tools: [{name: team_send_message, args: {to: Lead, text: How wide?, wait_for_reply: true}}]
  - {name: eli reads again, member: '^Eli$', has: [the frame is wide], lacks: [four sticks], delay_ms: 100, tools: [{name: file_read, args: {path: Dora/wide.txt}}]}
  - {name: eli large, member: '^Eli$', has: [four sticks], delay_ms: 100, tools: [{name: complete, args: {summary: the dragon is large}}]}
  - {name: eli reads, member: '^Eli$', has: [the frame is narrow], lacks: [two sticks], delay_ms: 100, tools: [{name: file_read, args: {path: Dora/narrow.txt}}]}
  - {name: eli small, member: '^Eli$', delay_ms: 100, tools: [{name: complete, args: {summary: the dragon is small}}]}
`
