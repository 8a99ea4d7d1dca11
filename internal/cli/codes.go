package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proveto/proveto/internal/config"
)

// codes are the fine-grained words of answers, with their meaning. A test
// compares the table with what the packages return.
var codes = map[string]string{
	"ok":                    "it is done, and what was asked holds",
	"abstained":             "an abstention is recorded; it counts for nothing",
	"already_delivered":     "the approved tree stood on its branch before",
	"already_passed":        "the stage has passed",
	"already_rejected":      "the stage was rejected before",
	"ambiguous_actor":       "several principals whose keys you have hold the role",
	"ambiguous_id":          "several things begin or end so; the hints list them",
	"anchor_missing":        "the repository has no anchor of this ledger",
	"anchor_moved":          "somebody else wrote the anchor first",
	"approvals_missing":     "the approval is recorded; the stage needs more",
	"approved":              "the stage has passed by decisions",
	"bad_command":           "a command for the sandbox makes no sense",
	"bad_id":                "not an id, or the id of another kind of thing",
	"bad_path":              "a tree holds a name that cannot be checked out safely",
	"bad_reply":             "a helper of a language driver answered nonsense",
	"bad_request":           "a helper of a language driver was asked nonsense",
	"bad_utf8":              "a text holds bytes that are no UTF-8",
	"base_unresolved":       "a revision names no commit",
	"baseline_failed":       "tests fail on the original",
	"baseline_red":          "the suite is red, so that nothing could be measured",
	"blob_bad":              "stored bytes do not have the digest they are filed under",
	"blocked":               "the run waits for something that only somebody can end; status names it",
	"build_failed":          "the package or its tests do not build",
	"busy":                  "another process works with the database or the directories; nothing was recorded or removed",
	"cancelled":             "stopped before the command began",
	"cert_unsupported":      "SSH certificates do not name principals here",
	"certificate_bad":       "the stored runs derive something else",
	"changes_requested":     "a request for changes is recorded",
	"checkout_not_clean":    "a checkout of ours was changed",
	"checkpoint_bad":        "a checkpoint is not about these entries, or not by this engine",
	"codegraph_malformed":   "what a driver reported does not fit together",
	"config_invalid":        "the configuration has an unknown key or a wrong value",
	"configuration":         "the project cannot be run as it is configured",
	"conflict":              "somebody else was first",
	"contradictory_flags":   "two flags ask for opposite things",
	"database_or_network":   "tests need a database or the network",
	"denominator_fell":      "fewer tests ran than at the base",
	"dependency_missing":    "a module or a library is missing",
	"digest_mismatch":       "received bytes do not have the digest they were announced with",
	"empty_submission":      "the snapshot is the base: nothing was changed",
	"engine_unknown":        "the ledger was founded with another engine key",
	"environment_sensitive": "tests give another answer in another environment",
	"evidence_missing":      "a blob or a run that is cited is not there",
	"evidence_pending":      "gates of the stage are being measured",
	"expired":               "a key, a lease or a capability is past its time",
	"fast_lane_disagreed":   "a plainly mutated build gave another answer",
	"findings_open":         "blocking findings are not answered",
	"flaky":                 "tests did not give the same answer twice",
	"gate_blind":            "a gate accepted a tree that it must refuse, so nothing that it says counts",
	"gate_failed":           "the scope is not guarded as the gate asks",
	"gate_not_proven":       "nothing shows that a required gate can refuse",
	"idem_conflict":         "the key was used before, for another request",
	"internal":              "a fault of ours",
	"interrupted":           "stopped by you, or by --timeout; resumable",
	"io":                    "a file or a directory cannot be read or written",
	"isolation_too_low":     "the machine reaches less isolation than required",
	"key_bad":               "a key file cannot be used",
	"key_locked":            "the key needs a passphrase, and nobody can be asked",
	"key_open":              "a key file can be read by others",
	"killed_by_error":       "tests noticed only by crashing",
	"lease_held":            "somebody else works on the stage",
	"lease_lost":            "the lease on the stage is over",
	"ledger_broken":         "an entry, a hash or the storage of the ledger is damaged",
	"merge_conflict":        "work and target change the same lines",
	"needs_setup":           "the project cannot be run here; the message has the category and the command that helps",
	"no_project":            "nothing that a driver can read was found",
	"no_repository":         "the directory is not a git repository",
	"no_space":              "the disk is full; nothing was recorded",
	"no_such_file":          "a tree has no file of that name",
	"no_tests":              "no test reaches any behaviour",
	"no_tests_ran":          "every test is skipped",
	"not_authenticated":     "there is no key of that principal here",
	"not_found":             "the named thing does not exist",
	"not_permitted":         "the principal lacks the right",
	"not_started":           "a command could not be executed",
	"not_the_same":          "the tree has no such project",
	"note_missing":          "a note has to say why",
	"nothing_submitted":     "nothing was handed in at the stage",
	"object_missing":        "a tree or a blob is gone from the object store",
	"order_dependent":       "tests pass only after other tests",
	"origin_changed":        "a dependency comes from elsewhere than the lock files say",
	"out_of_budget":         "the budget ended before it was begun",
	"overlay_loosens":       "the local policy file asks for less than the committed one",
	"path_collision":        "two names that some file systems cannot tell apart",
	"pending":               "recorded, and not measured or decided yet",
	"permission":            "permission denied",
	"plan_invalid":          "the contract does not parse, or has an unknown key",
	"plan_superseded":       "a newer revision of the plan holds",
	"plan_violated":         "the plan, or a change, breaks the rules of the contract",
	"policy_invalid":        "the policy has an unknown key or a wrong value, or there is none of that name",
	"projection_differs":    "what follows from the ledger differs from what is stored; proveto rebuild repairs it",
	"ref_checked_out":       "a work tree is on the branch, or comes back to it",
	"ref_moved":             "the branch is not where it was seen; nothing was written",
	"rejected":              "a rejection is recorded",
	"report_incomplete":     "tests ended the test process before the end",
	"report_tampered":       "somebody else wrote on the results descriptor",
	"rerun_differs":         "the rerun did not agree; the certificate lost its credit",
	"revoked":               "the principal or the key was revoked",
	"rolled_back":           "entries that somebody outside has seen are gone",
	"rounds_exhausted":      "the run came back to the stage too often",
	"run_closed":            "the run is cancelled, expired or delivered",
	"run_paused":            "the run is paused",
	"runner_blind":          "a planted failing assertion came out green",
	"same_tree":             "the tree was returned or rejected before",
	"sandbox_broken":        "the supervisor of the sandbox died",
	"sandbox_closed":        "the sandbox was used after its end",
	"scope_overlap":         "another open run may change the same paths",
	"separation":            "the decider contributed to what is decided",
	"signature_bad":         "a signature does not verify",
	"source_unreadable":     "a file or a repository cannot be read",
	"source_unusable":       "source could not be instrumented",
	"stage_out_of_order":    "the stage is not at that point",
	"stale_subject":         "the decision names another attempt or input than the current one",
	"state_newer":           "the state was written by a newer version",
	"strength_too_low":      "a behaviour's share of killed probes is below the bar",
	"superseded":            "another worker has the job now",
	"survived":              "tests stayed green on the broken copy",
	"switch_sensitive":      "tests fail whenever a probe is switched on, or what they execute is recorded",
	"tests_not_run":         "a test that reaches it was skipped or left out, so nothing can be said",
	"timed_out":             "a measurement took longer than the policy allows",
	"timeout":               "a time limit of ours was reached",
	"token_invalid":         "not the token of the plan that holds",
	"token_missing":         "the hand-over needs the token of the plan",
	"too_large":             "more than is accepted",
	"tool_missing":          "a tool is missing or too old",
	"tree_mismatch":         "the tree is not the one that was approved",
	"tree_missing":          "the tree that a certificate is about is not in this repository",
	"unknown_repository":    "the repository has no store here",
	"unknown_stage":         "the policy has no such stage",
	"unmeasured":            "too much of the scope could not be measured",
	"unsupported_runner":    "the test runner is not supported",
	"usage":                 "flags or arguments are wrong; nothing happened",
	"veto_stands":           "somebody said no to the same input",
	"waiver_missing":        "nobody else signed an exception before",
	"wrong_audience":        "made for another run, stage or ledger",
	"wrong_role":            "the stage is for another role",
}

func codesText() string {
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		fmt.Fprintf(&b, "  %-22s %s\n", c, codes[c])
	}
	return b.String()
}

func configText() string {
	var b strings.Builder
	b.WriteString("Strongest first: flag, PROVETO_SECTION_KEY, proveto.yaml, the user's config.yaml, default.\n" +
		"Judging a change, the gate and isolation.min are read from the base.\n\n")
	for _, k := range config.Keys() {
		fmt.Fprintf(&b, "  %-22s %s\n", k.Name, k.Doc)
	}
	return b.String()
}
