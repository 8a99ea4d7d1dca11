package archtest

// Floor is a storey of the architecture. A package may import any lower floor,
// unless its row says less.
type Floor int

// The floors, lowest first.
const (
	Words Floor = iota
	Effects
	Translators
	Rules
	Jobs
	Shows
	UseCases
	Faces
	Wiring
	Tools // beside the binary: bench, attacks, archtest; nothing of the product imports them
)

var floorNames = [...]string{"words", "effects", "translators", "rules", "jobs", "shows", "use cases", "faces", "wiring", "tools"}

// String is the name of the floor as docs spell it.
func (f Floor) String() string { return floorNames[f] }

// Power is something that only listed packages may do.
type Power string

// The powers.
const (
	StartsProcesses Power = "start_process" // os/exec, os.StartProcess, fork and exec system calls
	SpeaksSQL       Power = "sql"           // a database driver, or the text of a query
	UsesSQLTypes    Power = "sql_types"     // database/sql, for its types
	Exits           Power = "exit"          // os.Exit, log.Fatal
	RecordsRuns     Power = "record_run"    // evidence.RecordRun
	LoadsRuns       Power = "load_run"      // evidence.LoadRun
	HasInit         Power = "init"          // an init function
)

// Row is what the architecture says about one package.
type Row struct {
	Path  string // relative to the module; exact
	Floor Floor
	Why   string // its one responsibility
	// Along names packages of the same floor that it may import.
	Along []string
	// Only, when not nil, replaces "every lower floor": nothing else of ours may
	// be imported.
	Only []string
	// Never lists packages that it must not reach, not even through others.
	Never []string
	// May gives powers, each with its reason.
	May map[Power]string
}

// credit is what a proposal must not reach by any path: the places where credit
// is kept.
var credit = []string{"internal/ledger", "internal/store"}

// faces parse, call a use case and show a view; they hold no logic.
var face = []string{"internal/app", "internal/app/flows", "internal/view", "internal/render", "internal/config", "internal/evidence", "internal/fault"}

// Table is the whole architecture. Rows of packages that are planned and do not
// exist yet are allowed; a package without a row is not.
var Table = []Row{
	{
		Path: "cmd/proveto", Floor: Wiring, Why: "main: wires the packages and exits",
		May: map[Power]string{Exits: "the only place that ends the process"},
	},

	{
		Path: "internal/cli", Floor: Faces, Why: "command line", Only: face,
		May: map[Power]string{StartsProcesses: "the browser of --open"},
	},
	{Path: "internal/httpd", Floor: Faces, Why: "pages and JSON API", Only: face},
	{Path: "internal/mcpd", Floor: Faces, Why: "MCP over stdio and HTTP", Only: face},

	{Path: "internal/app", Floor: UseCases, Why: "the only place that joins jobs"},
	{Path: "internal/app/flows", Floor: UseCases, Why: "the use cases of flow", Along: []string{"internal/app", "internal/app/gates"}},
	{Path: "internal/app/gates", Floor: UseCases, Why: "measures the gates of a flow", Along: []string{"internal/app"}},

	{Path: "internal/view", Floor: Shows, Why: "plain read models"},
	{Path: "internal/render", Floor: Shows, Why: "text, JSON, HTML and foreign formats of a view", Along: []string{"internal/view"}},

	{Path: "internal/prove", Floor: Jobs, Why: "which behaviours a test guards"},
	{Path: "internal/flow", Floor: Jobs, Why: "a task carried from stage to stage", Along: []string{"internal/flow/plan", "internal/flow/policy"}},
	{Path: "internal/flow/policy", Floor: Jobs, Why: "the rules that a run is carried by", Only: []string{"internal/evidence", "internal/fault", "internal/strictyaml"}},
	{
		Path: "internal/flow/plan", Floor: Jobs, Why: "what a change may be, and whether it is that", Along: []string{"internal/flow/deps", "internal/flow/gosrc"},
		Only: []string{"internal/evidence", "internal/fault", "internal/late", "internal/pathname", "internal/strictyaml"},
	},
	{
		Path: "internal/attest", Floor: Jobs, Why: "what can be said of an approved run elsewhere, without the ledger",
		Along: []string{"internal/flow", "internal/flow/plan", "internal/flow/policy"},
		Only:  []string{"internal/evidence", "internal/fault", "internal/gate", "internal/identity", "internal/ledger"},
	},
	{Path: "internal/flow/deps", Floor: Jobs, Why: "dependencies that manifests and lock files name", Only: []string{"internal/late"}},
	{Path: "internal/flow/gosrc", Floor: Jobs, Why: "what an edit does to exported Go symbols, to tests", Only: []string{"internal/evidence", "internal/late"}},
	{Path: "internal/lab", Floor: Jobs, Why: "candidates compete on a measured objective"},
	{Path: "internal/draft", Floor: Jobs, Why: "proposed tests", Never: credit},

	{Path: "internal/gate", Floor: Rules, Why: "what a gate of a flow can answer"},
	{Path: "internal/grade", Floor: Rules, Why: "grader protocol"},

	{Path: "internal/lang", Floor: Translators, Why: "the seam between the prove job and the languages"},
	{
		Path: "internal/lang/golang", Floor: Translators, Why: "the Go driver",
		Along: []string{"internal/lang", "internal/lang/golang/source", "internal/lang/golang/mutate", "internal/lang/golang/controller"},
	},
	{
		Path: "internal/lang/golang/source", Floor: Translators, Why: "loads and scans Go packages",
		Along: []string{"internal/lang", "internal/lang/golang/mutate"},
		May:   map[Power]string{StartsProcesses: "its helper runs inside the sandbox, and go/packages starts go list there"},
	},
	{Path: "internal/lang/golang/mutate", Floor: Translators, Why: "writes probes into Go source", Only: []string{"internal/evidence", "internal/fault"}},
	{Path: "internal/lang/golang/controller", Floor: Translators, Why: "our code inside package testing", Along: []string{"internal/lang"}, Only: []string{"internal/evidence", "internal/fault"}},
	{Path: "internal/lang/python", Floor: Translators, Why: "the Python driver", Along: []string{"internal/lang"}},
	{Path: "internal/lang/javascript", Floor: Translators, Why: "the JavaScript and TypeScript driver", Along: []string{"internal/lang"}},
	{Path: "internal/lang/java", Floor: Translators, Why: "the Java driver", Along: []string{"internal/lang"}},
	{Path: "internal/codegraph", Floor: Translators, Why: "joins what the drivers report", Along: []string{"internal/lang"}},
	{Path: "internal/llm/wire", Floor: Translators, Why: "wire formats of model services", Never: credit},
	{Path: "internal/llm", Floor: Translators, Why: "text from a model", Along: []string{"internal/llm/wire"}, Never: credit},
	{Path: "internal/llm/proxy", Floor: Translators, Why: "a model endpoint for agents", Along: []string{"internal/llm", "internal/llm/wire"}, Never: credit},
	{Path: "internal/llm/scripted", Floor: Translators, Why: "a model server that follows a script", Along: []string{"internal/llm", "internal/llm/wire"}, Never: credit},
	{Path: "internal/agent", Floor: Translators, Why: "a session with an agent", Along: agentBelow, Never: credit},
	{Path: "internal/agent/acp", Floor: Translators, Why: "agents that speak ACP", Along: agentAlong, Never: credit},
	{Path: "internal/agent/claude", Floor: Translators, Why: "Claude Code", Along: agentAlong, Never: credit},
	{Path: "internal/agent/codex", Floor: Translators, Why: "Codex", Along: agentAlong, Never: credit},
	{Path: "internal/agent/command", Floor: Translators, Why: "any command as an agent", Along: agentAlong, Never: credit},
	{Path: "internal/agent/loop", Floor: Translators, Why: "our own agent for any model", Along: agentAlong, Never: credit},
	{Path: "internal/agent/optimiser", Floor: Translators, Why: "an agent without a model", Along: agentAlong, Never: credit},

	{
		Path: "internal/sandbox", Floor: Effects, Why: "runs one command under limits",
		May: map[Power]string{
			StartsProcesses: "this is what it is for",
			RecordsRuns:     "a run is made where the process was seen to end",
			Exits:           "its supervisor is a process of its own, started from our executable",
		},
	},
	{
		Path: "internal/snapshot", Floor: Effects, Why: "seals, merges, checks out and delivers trees",
		May: map[Power]string{StartsProcesses: "git"},
	},
	{
		Path: "internal/ledger", Floor: Effects, Why: "the append-only, hash-chained record", Along: []string{"internal/store", "internal/blob", "internal/identity"},
		May: map[Power]string{LoadsRuns: "a stored run is read back by its digest here"},
	},
	{
		Path: "internal/queue", Floor: Effects, Why: "jobs on River", Along: []string{"internal/store"},
		May: map[Power]string{UsesSQLTypes: "River takes the transaction of the store"},
	},
	{
		Path: "internal/store", Floor: Effects, Why: "the database", Along: []string{"internal/store/internal/query"},
		May: map[Power]string{SpeaksSQL: "the only package that does", UsesSQLTypes: "the only package that opens a database"},
	},
	{
		Path: "internal/store/internal/query", Floor: Effects, Why: "generated typed queries of the store",
		May: map[Power]string{SpeaksSQL: "generated from the store's query files", UsesSQLTypes: "generated code names the types"},
	},
	{
		Path: "internal/store/storetest", Floor: Effects, Why: "databases for tests", Along: []string{"internal/store"},
		May: map[Power]string{StartsProcesses: "a private PostgreSQL for the tests", UsesSQLTypes: "makes the databases that a test opens"},
	},
	{Path: "internal/identity", Floor: Effects, Why: "keys and principals"},
	{Path: "internal/blob", Floor: Effects, Why: "content-addressed files"},

	{Path: "internal/evidence", Floor: Words, Why: "runs, certificates, measurements", Along: []string{"internal/fault"}},
	{Path: "internal/secret", Floor: Words, Why: "the shapes of keys that must not be written down", Along: []string{"internal/evidence"}},
	{Path: "internal/strictyaml", Floor: Words, Why: "YAML files of which nothing is skipped", Along: []string{"internal/fault"}},
	{Path: "internal/wholefile", Floor: Words, Why: "files that are whole or not there"},
	{Path: "internal/late", Floor: Words, Why: "things that are made when they are first needed"},
	{Path: "internal/fault", Floor: Words, Why: "the vocabulary of errors"},
	{Path: "internal/config", Floor: Words, Why: "configuration keys", Along: []string{"internal/fault", "internal/strictyaml"}},
	{Path: "internal/pathname", Floor: Words, Why: "names that file systems confuse"},

	{Path: "internal/archtest", Floor: Tools, Why: "the architecture as data", Only: []string{}},
	{Path: "attacks", Floor: Tools, Why: "ways to cheat a check, with what must happen", Only: []string{}},
	{
		Path: "attacks/try", Floor: Tools, Why: "lays out one attack for a look by hand", Along: []string{"attacks"}, Only: []string{},
		May: map[Power]string{StartsProcesses: "git and the product's binary, asked for by hand", Exits: "a command of its own"},
	},
	{Path: "internal/e2e", Floor: Tools, Why: "tests of the whole product: killed, damaged, run twice", Only: []string{}},
	{Path: "bench/paired", Floor: Tools, Why: "two commands measured in turn", Only: []string{}, May: benchmark},
	{Path: "bench/flow", Floor: Tools, Why: "flow beside the workflow of LACP", Only: []string{}, May: benchmark},
	{Path: "bench/groundtruth", Floor: Tools, Why: "what the whole suite can kill, found the slow way", Only: []string{}, May: benchmark},
	{Path: "bench/gremlins", Floor: Tools, Why: "the verdicts of another tool", Only: []string{}, May: benchmark},
	{Path: "bench/table", Floor: Tools, Why: "what one start finds in each module, and what it costs", Only: []string{}, May: benchmark},
	{
		Path: "bench/compare", Floor: Tools, Why: "our verdicts beside those of others", Only: []string{},
		May: map[Power]string{Exits: "a command of its own"},
	},
}

var (
	agentBelow = []string{"internal/llm", "internal/llm/wire", "internal/llm/proxy", "internal/llm/scripted"}
	agentAlong = append([]string{"internal/agent"}, agentBelow...)
	benchmark  = map[Power]string{StartsProcesses: "measures commands", Exits: "a command of its own"}
)

// drivers are third-party packages that open a database; a package that imports
// one needs the power named.
var drivers = map[string]Power{
	"modernc.org/sqlite":                      SpeaksSQL,
	"github.com/jackc/pgx":                    SpeaksSQL,
	"github.com/lib/pq":                       SpeaksSQL,
	"github.com/mattn/go-sqlite3":             SpeaksSQL,
	"github.com/pressly/goose":                SpeaksSQL,
	"database/sql":                            UsesSQLTypes,
	"github.com/riverqueue/river/riverdriver": UsesSQLTypes,
	"os/exec":                        StartsProcesses,
	"golang.org/x/tools/go/packages": StartsProcesses,
	"github.com/rogpeppe/go-internal/testscript": StartsProcesses,
	"github.com/chromedp/chromedp":               StartsProcesses,
}
