package e2e_test

// dagScript plays the seven cases of the contract dag. What members write comes
// from what they were shown: files, deliveries, answers. Members have names of
// their own in each case.
const dagScript = `rules:
  # A small question is answered, and nobody is asked.
  - name: answer directly
    member: '^Lead$'
    has: [Case direct]
    capture: {level: 'gauge stood at (\d+ m)'}
    text: 'The gauge stood at {{level}}.'

  # Two files, two members side by side.
  - name: split
    member: '^Lead$'
    has: [Case review]
    lacks: ['kind=\\"team_report\\"', '"name":"team_create","arguments"']
    tools:
      - name: team_create
        args:
          goal: Review both charts.
          members:
            - {name: Hana, brief: Review Lead/harbour.txt. Say the depth it gives.}
            - {name: Rio, brief: Review Lead/river.txt. Say the depth it gives.}
  - {name: both are on it, member: '^Lead$', has: [Case review], lacks: ['kind=\\"team_report\\"'], text: Both charts are being reviewed.}
  - name: read both reviews
    member: '^Lead$'
    has: [Case review]
    lacks: ['"name":"file_read","arguments"']
    tools: [{name: file_read, args: {path: Hana/review.md}}, {name: file_read, args: {path: Rio/review.md}}]
  - name: accept both
    member: '^Lead$'
    has: [Case review]
    lacks: ['"name":"team_dissolve","arguments"']
    tools: [{name: team_dissolve, args: {}}]
  - name: integrate
    member: '^Lead$'
    has: [Case review]
    capture: {harbour: 'the harbour is (\d+ m) deep', river: 'the river is (\d+ m) deep'}
    text: 'The harbour has {{harbour}}, the river {{river}}.'
  - {name: hana reads, member: '^Hana$', lacks: ['"name":"file_read","arguments"'], hold: side by side, tools: [{name: file_read, args: {path: Lead/harbour.txt}}]}
  - {name: rio reads, member: '^Rio$', lacks: ['"name":"file_read","arguments"'], hold: side by side, tools: [{name: file_read, args: {path: Lead/river.txt}}]}
  - name: hana delivers
    member: '^Hana$'
    capture: {depth: 'depth: (\d+ m)'}
    tools:
      - {name: file_write, args: {path: review.md, content: 'the harbour is {{depth}} deep'}}
      - {name: complete, args: {summary: Reviewed., paths: [review.md]}}
  - name: rio delivers
    member: '^Rio$'
    capture: {depth: 'depth: (\d+ m)'}
    tools:
      - {name: file_write, args: {path: review.md, content: 'the river is {{depth}} deep'}}
      - {name: complete, args: {summary: Reviewed., paths: [review.md]}}

  # A writer builds on what a scout found, wherever it lies.
  - name: hand over
    member: '^Lead$'
    has: [Case handoff]
    lacks: ['kind=\\"team_report\\"', '"name":"team_create","arguments"']
    tools:
      - name: team_create
        args:
          goal: A page on the bridge.
          members:
            - {name: Writer, brief: Write page.md from what Scout found., depends_on: [Scout]}
            - {name: Scout, brief: Find out when the bridge was opened.}
  - {name: scout is on it, member: '^Lead$', has: [Case handoff], lacks: ['kind=\\"team_report\\"'], text: The scout is on its way.}
  - {name: accept the page, member: '^Lead$', has: [Case handoff], lacks: ['"name":"team_dissolve","arguments"'], tools: [{name: file_read, args: {path: Writer/page.md}}, {name: team_dissolve, args: {}}]}
  - {name: the page, member: '^Lead$', has: [Case handoff], capture: {year: 'opened in (\d+), says'}, text: 'The bridge was opened in {{year}}.'}
  - name: scout delivers
    member: '^Scout$'
    hold: scout
    tools:
      - {name: file_write, args: {path: notes/found/facts.md, content: opened in 1931}}
      - {name: complete, args: {summary: The year of the bridge is in the file., paths: [notes/found/facts.md]}}
  - name: writer reads
    member: '^Writer$'
    lacks: ['"name":"file_read","arguments"']
    capture: {path: '(Scout/[\w/]+\.md)'}
    tools: [{name: file_read, args: {path: '{{path}}'}}]
  - name: writer delivers
    member: '^Writer$'
    capture: {year: 'opened in (\d+)'}
    tools:
      - {name: file_write, args: {path: page.md, content: 'The bridge was opened in {{year}}, says Scout.'}}
      - {name: complete, args: {summary: The page is written., paths: [page.md]}}

  # What was delivered turns out to be wrong.
  # The newest first: what the Lead remembers of earlier turns does not matter.
  - name: accept the sentence
    member: '^Lead$'
    has: [Case revision, 'A sentence about 14 boats']
    lacks: ['"name":"team_dissolve","arguments"']
    tools: [{name: file_read, args: {path: Teller/sentence.txt}}, {name: team_dissolve, args: {}}]
  - {name: revised, member: '^Lead$', has: [Case revision, 'A sentence about 14 boats'], capture: {n: 'We saw (14 boats)'}, text: 'There are {{n}}.'}
  - name: tell it again
    member: '^Lead$'
    has: [Case revision, '14 boats were counted']
    lacks: [the count was corrected]
    tools:
      - name: team_replan
        args: {operations: [{op: revise, name: Teller, brief: Write the sentence about the boats again., reason: the count was corrected}]}
  - {name: teller is on it, member: '^Lead$', has: [Case revision, '14 boats were counted'], text: The sentence is being written again.}
  - name: count again
    member: '^Lead$'
    has: [Case revision, 'New evidence']
    lacks: [a boat was missed]
    capture: {n: 'New evidence: (\d+) boats'}
    tools:
      - name: team_replan
        args: {operations: [{op: revise, name: Counter, brief: 'There are {{n}} boats. Write the number to boats.txt.', reason: a boat was missed}]}
  - {name: they count again, member: '^Lead$', has: [Case revision, 'New evidence'], text: They count again.}
  - name: tell it
    member: '^Lead$'
    has: [Case revision, 'A sentence about 12 boats']
    lacks: ['"name":"file_read","arguments"']
    tools: [{name: file_read, args: {path: Teller/sentence.txt}}]
  - {name: told, member: '^Lead$', has: [Case revision, 'A sentence about 12 boats'], capture: {n: 'We saw (\d+ boats)'}, text: 'There are {{n}}. The team is there for questions.'}
  - name: count and tell
    member: '^Lead$'
    has: [Case revision]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - name: team_create
        args:
          goal: How many boats there are.
          members:
            - {name: Counter, brief: 'There are 12 boats. Write the number to boats.txt.'}
            - {name: Teller, brief: Write a sentence about the boats., depends_on: [Counter]}
  - {name: they count, member: '^Lead$', has: [Case revision], text: They count.}
  - name: counter delivers again
    member: '^Counter$'
    has: [There are 14 boats]
    hold: recount
    tools:
      - {name: file_write, args: {path: boats.txt, content: 14 boats}}
      - {name: complete, args: {summary: 14 boats were counted., paths: [boats.txt]}}
  - name: counter delivers
    member: '^Counter$'
    tools:
      - {name: file_write, args: {path: boats.txt, content: 12 boats}}
      - {name: complete, args: {summary: 12 boats were counted., paths: [boats.txt]}}
  - name: teller reads
    member: '^Teller$'
    lacks: ['"name":"file_read","arguments"']
    tools: [{name: file_read, args: {path: Counter/boats.txt}}]
  - name: teller delivers
    member: '^Teller$'
    capture: {n: '"content":"(\d+ boats)"'}
    tools:
      - {name: file_write, args: {path: sentence.txt, content: 'We saw {{n}}.'}}
      - {name: complete, args: {summary: 'A sentence about {{n}}.', paths: [sentence.txt]}}

  # An input is missing, and the member's model gives up.
  - name: three parts
    member: '^Lead$'
    has: [Case failure]
    lacks: ['kind=\\"team_report\\"', '"name":"team_create","arguments"']
    tools:
      - name: team_create
        args:
          goal: A chart of the river.
          members:
            - {name: Ground, brief: Say what the ground is.}
            - {name: Gauge, brief: Read Lead/gauge.csv and say the level.}
            - {name: Chart, brief: Draw the chart., depends_on: [Ground, Gauge]}
  - {name: three are on it, member: '^Lead$', has: [Case failure], lacks: ['kind=\\"team_report\\"'], text: They are on it.}
  - name: replace
    member: '^Lead$'
    has: [Case failure, 'Failed: ']
    lacks: ['"name":"team_replan","arguments"']
    tools:
      - name: team_replan
        args:
          operations:
            - {op: cancel, name: Gauge, reason: its input is not there}
            - {op: add, name: Gauge, brief: Estimate the level.}
            - {op: add, name: Gauge2, brief: Estimate the level from the ground., depends_on: [Ground]}
            - {op: add, name: Chart2, brief: Draw the chart., depends_on: [Ground, Gauge2]}
  - {name: replaced, member: '^Lead$', has: [Case failure, 'Failed: '], text: 'The level is estimated instead.'}
  - {name: accept the chart, member: '^Lead$', has: [Case failure], lacks: ['"name":"team_dissolve","arguments"'], tools: [{name: file_read, args: {path: Chart2/chart.txt}}, {name: team_dissolve, args: {}}]}
  - {name: charted, member: '^Lead$', has: [Case failure], capture: {chart: '"content":"(\w+ at about \d+ m)"'}, text: 'Chart: {{chart}}.'}
  - name: ground delivers
    member: '^Ground$'
    tools:
      - {name: file_write, args: {path: ground.txt, content: gravel}}
      - {name: complete, args: {summary: The ground is in the file., paths: [ground.txt]}}
  - {name: gauge reads, member: '^Gauge$', lacks: ['"name":"file_read","arguments"'], hold: gauge, tools: [{name: file_read, args: {path: Lead/gauge.csv}}]}
  - {name: gauge gives up, member: '^Gauge$', status: 400, text: no answer}
  - name: gauge2 delivers
    member: '^Gauge2$'
    has: ['Ground/ground.txt']
    tools: [{name: complete, args: {summary: about 3 m, paths: []}}]
  - {name: chart2 reads, member: '^Chart2$', lacks: ['"name":"file_read","arguments"'], tools: [{name: file_read, args: {path: Ground/ground.txt}}]}
  - name: chart2 delivers
    member: '^Chart2$'
    capture: {ground: '"content":"(\w+)"', level: '(about \d+ m)'}
    tools:
      - {name: file_write, args: {path: chart.txt, content: '{{ground}} at {{level}}'}}
      - {name: complete, args: {summary: The chart is drawn., paths: [chart.txt]}}
`
