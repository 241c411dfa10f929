package mutants

func init() { lists["config"] = configMutants }

// configMutants are the safeguards of package config.
var configMutants = []mutant{
	{
		name: "a value that is not valid is shown", file: "config/value.go", test: "TestARefusedValueIsKeptOut",
		old: "if value, err = v.codec.Decode(data); err == nil {",
		new: "if value, err = v.codec.Decode(data); err == nil && false {",
	},
	{
		name: "a refused value takes the place of the last good one", file: "config/value.go",
		test: "TestARefusedValueIsKeptOut",
		old:  "\"version\", node.Zxid, \"error\", err)\n\t\treturn\n",
		new:  "\"version\", node.Zxid, \"error\", err)\n\t\tnext = &Snapshot[T]{}\n",
	},
	{
		name: "a missing node without a default is the zero value", file: "config/value.go",
		test: "TestAMissingNodeWithoutADefaultKeepsTheLastGoodValue",
		old:  "if !v.opts.hasDefault {", new: "if !v.opts.hasDefault && false {",
	},
	{
		name: "Set writes what readers refuse", file: "config/value.go",
		test: "TestRollbackWritesAnEarlierVersionAgain",
		old:  "if _, err := v.decodeBytes(data); err != nil {",
		new:  "if _, err := v.decodeBytes(data); err != nil && false {",
	},
	{
		name: "Run ends with a permission that is missing", file: "config/value.go",
		test: "TestRunGoesOnAfterAPermissionThatIsMissing",
		old:  "case errors.Is(err, framework.ErrClosed), errors.Is(err, framework.ErrAuthFailed):", new: "default:",
	},
	{
		name: "If is not checked", file: "config/store.go", test: "TestIfWritesOnlyOverTheVersionThatWasRead",
		old: "if w.conditional && now.Zxid != w.wanted {", new: "if w.conditional && now.Zxid != w.wanted && false {",
	},
	{
		name: "a value is written over any version", file: "config/store.go",
		test: "TestAConditionalSetIsRefusedIfAnotherIsAppliedAfterItsRead",
		old:  "framework.SetOp(s.path, w.data, now.Stat.Version)",
		new:  "framework.SetOp(s.path, w.data, framework.AnyVersion)",
	},
	{
		name: "a lost reply is not looked up", file: "config/store.go", test: "TestALostReplyOfSetIsSettled",
		old: "if w.unknown {\n\t\tapplied", new: "if w.unknown && false {\n\t\tapplied",
	},
	{
		name: "a try whose records are gone is repeated", file: "config/store.go",
		test: "TestASetThatManyOthersFollowIsNotGuessed",
		old:  "if len(names) >= historySize-1 {", new: "if false {",
	},
	{
		name: "an unknown outcome is not told", file: "config/store.go",
		test: "TestASetWhoseContextEndsTellsThatItsOutcomeIsUnknown",
		old:  "if err != nil && w.unknown &&", new: "if err != nil && w.unknown && false &&",
	},
	{
		name: "old records stay", file: "config/store.go",
		test: "TestTheHistoryKeepsTwentyRecordsAndTellsOfOtherPrograms",
		old:  "len(names)+len(records)-historySize", new: "len(names)+len(records)-1000",
	},
	{
		name: "a value of another program is not recorded", file: "config/store.go",
		test: "TestTheHistoryKeepsTwentyRecordsAndTellsOfOtherPrograms",
		old:  "\t\tif !recorded {\n", new: "\t\tif !recorded && false {\n",
	},
	{
		name: "a large value of another program must be recorded whole", file: "config/store.go",
		test: "TestSetOverALargeForeignValue",
		old:  "		w.omitForeign = true\n		return recipe.ErrAgain\n", new: "		return err\n",
	},
	{
		name: "a text takes what its escapes take", file: "config/record.go", test: "TestLargeTexts",
		old: "escapedLength(data) <= base64", new: "0*escapedLength(data) <= base64",
	},
	{
		name: "markup is escaped", file: "internal/recipe/record.go", pkg: "./config", test: "TestLargeTexts",
		old: "	e.SetEscapeHTML(false)\n", new: "",
	},
	{
		name: "a key changes what the default refers to", file: "config/treekeys.go",
		test: "TestAKeyChangesNoOtherValue",
		old:  "			v.SetZero() //", new: "			_ = v //",
	},
	{
		name: "a pipe is opened", file: "internal/lastgood/lastgood.go", test: "TestOnlyRegularFilesAreUsed",
		old: "	if err == nil && !info.Mode().IsRegular() {",
		new: "	if err == nil && !info.Mode().IsRegular() && false {",
	},
	{
		name: "leftovers stay", file: "internal/lastgood/lastgood.go", test: "TestLeftoversAreDeleted",
		old: "	deleteLeftovers(name)\n", new: "",
	},
	{
		name: "a file that is being written is deleted", file: "internal/lastgood/lastgood.go",
		test: "TestLeftoversAreDeleted",
		old:  "time.Since(info.ModTime()) > leftoverAge {", new: "time.Since(info.ModTime()) > 0 {",
	},
	{
		name: "a file's checksum is not compared", file: "internal/lastgood/lastgood.go",
		test: "TestADamagedOrForeignFileIsRefused",
		old:  "if string(sum) != checksum(rest) {", new: "if string(sum) != checksum(rest) && false {",
	},
	{
		name: "a file of another path is read", file: "internal/lastgood/lastgood.go",
		test: "TestADamagedOrForeignFileIsRefused",
		old:  "if c.Path != path {", new: "if c.Path != path && false {",
	},
	{
		name: "a tree's nodes are not read twice", file: "config/treereader.go", test: "TestATreeShowsOneMoment",
		old: "if same, err := r.isSame(ctx, s); same || err != nil {", new: "if _, err := r.isSame(ctx, s); true {",
	},
	{
		name: "a tree is read without a sync", file: "config/treereader.go", test: "TestATreeReadsBehindASync",
		old: "\tr.resync.Store(true)\n\tfor {", new: "\tr.resync.Store(false)\n\tfor {",
	},
	{
		name: "the version of a tree falls with a deleted directory", file: "config/treereader.go",
		test: "TestATreeFollowsKeysThatComeAndGo",
		old:  "n.above = st.Pzxid", new: "n.above = min(st.Pzxid, 1)",
	},
	{
		name: "a tree's version rises without a change of its keys", file: "config/value.go",
		test: "TestATreeGoesBackToWhatItsFollowerShowedLast",
		old:  "isKnown := v.seen && v.ofKeys &&", new: "isKnown := false && v.seen && v.ofKeys &&",
	},
	{
		name: "a tree forgets no key below a deleted node", file: "config/treereader.go",
		test: "TestATreeFollowsKeysThatComeAndGo",
		old:  "if n == nil || !slices.Contains(n.names, name) {", new: "if false {",
	},
	{
		name: "a tree's directory that is missing is not watched", file: "config/treereader.go",
		test: "TestATreeFollowsKeysThatComeAndGo",
		old:  "go r.awaitEvent(n, created)", new: "created.Stop()",
	},
	{
		name: "a tree's directories must spell a key alike", file: "config/treekeys.go",
		test: "TestTheFirstDirectoryCountsWhateverTheStyle",
		old:  "respelled = strings.Join(append([]string{known}, parts[n:]...), \".\")", new: "_ = known",
	},
	{
		name: "a tree's keys change its default", file: "config/treekeys.go", test: "TestATreesKeysAreFields",
		old: "\t\tv.Set(fresh)\n\t\treturn setByKeys",
		new: "\t\tif !v.IsNil() {\n\t\t\tfresh = v\n\t\t}\n\t\tv.Set(fresh)\n\t\treturn setByKeys",
	},
	{
		name: "a file is read without validation", file: "config/value.go", test: "TestAFileIsReadWithValidation",
		old: "value, err = v.decodeBytes(content.Data)", new: "value, err = v.codec.Decode(content.Data)",
	},
}
