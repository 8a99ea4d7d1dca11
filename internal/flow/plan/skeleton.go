package plan

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Skeleton is a contract to be filled in: commented YAML with the task as its
// goal. Until its blanks are filled it does not parse, and the error says which
// one is next.
func Skeleton(task string) ([]byte, error) {
	goal, err := json.Marshal(task) // a JSON text is a YAML text, on one line
	if err != nil {
		return nil, fmt.Errorf("write the task: %w", err)
	}
	return []byte(strings.Replace(skeleton, "@GOAL@", string(goal), 1)), nil
}

const skeleton = `# What is to be done, and what may change for it. What is not named here is
# denied. Fill the blanks (""), remove what you do not need, then:
#   proveto flow plan submit RUN FILE
version: 1
goal: @GOAL@
kind: behaviour            # behaviour | refactor | docs | config

# What must hold afterwards. A behaviour needs a test or a grader each.
requirements:
  - id: R1
    text: ""               # one sentence that can be wrong
    acceptance:
      # before: what the test does without the change: fails | absent | passes
      - {id: A1, test: "", before: fails}          # path::name, as auth/login_test.go::TestExpired
      # - {id: A2, grader: graders/login, min: 0.9}
      # - {id: A3, command: [make, e2e]}             # refuses the base, exits 0 with the change
      # - {id: A4, human: "The page reads well", role: reviewer}

# Which paths may change, and how. * ? within a name, ** any number of names,
# {a,b} either. There is no negation.
scope:
  - id: S1
    paths: [""]            # as auth/**
    ops: [create, modify]  # create, modify, delete, rename, mode
    for: [R1]
    # max_added: 400       # lines
    # required: true       # each of the paths must change

# By their names, as golang.org/x/oauth2.
dependencies: {add: [], bump: [], remove: []}

# Exported symbols that change, as {symbol: auth.Login, change: add}.
interfaces: []             # add | modify | remove

invariants: [{suite: all}]
budget: {files: 20, added: 600, deleted: 300, rounds: 5}   # also usd: 4, wall: 2h
non_goals: []
risk: medium               # low | medium | high
`
