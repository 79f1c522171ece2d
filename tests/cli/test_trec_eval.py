"""`detmap trec --format trec_eval`: the text of trec_eval 9.0.8 and 10.0, options and all."""

from __future__ import annotations

from pathlib import Path

import pytest

from detmap import cli

TREC = Path(__file__).resolve().parents[3] / "shared" / "data" / "trec"

QRELS = "10 0 a 1\n10 0 b 0\n2 0 c 2\n2 0 d 1\n2 0 e -1\n3 0 a 1\n"
RUN = (
    "2 Q0 z 1 4 first\n2 Q0 c 2 4 x\n2 Q0 d 3 3 x\n2 Q0 e 3 2 x\n"
    "10 Q0 b 1 0.9 x\n10 Q0 a 2 0.8 last\n9 Q0 a 1 1 last\n# a comment\n\n"
)

#: By version and options what trec_eval prints, with the tabs as bars and without the padding of names.
PRINTED = {
    ("trec", "-q -mmap -mP.2,1 -mrelstring -mgm_map -mnum_q -mrunid -mP.7"): """\
map|10|0.5000
P_1|10|0.0000
P_2|10|0.5000
relstring|10|'01'
map|2|0.5833
P_1|2|0.0000
P_2|2|0.5000
relstring|2|'-21.'
runid|all|last
num_q|all|2
map|all|0.5417
gm_map|all|0.5401
P_1|all|0.0000
P_2|all|0.5000
""",
    ("trec", "-q -c -mmap -mset_F.0.5 -mrelstring.2 -mnum_rel -l2"): """\
num_rel|10|0
map|10|0.0000
relstring_2|10|'01'
set_F_0.5|10|0.0000
num_rel|2|1
map|2|0.5000
relstring_2|2|'-2'
set_F_0.5|2|0.3333
num_rel|all|4
map|all|0.1667
set_F_0.5|all|0.1111
""",
    ("trec10", "-q -c -mmap -mset_F.0.5 -mrelstring.2 -mnum_rel -l2"): """\
num_rel|10|0
map|10|0.0000
relstring_2|10|'01'
set_F_0.5|10|0.0000
num_rel|2|1
map|2|0.5000
relstring_2|2|'-2'
set_F_0.5|2|0.3333
num_rel|3|0
map|3|0.0000
relstring_2|3|'-'
set_F_0.5|3|0.0000
num_rel|all|4
map|all|0.1667
set_F_0.5|all|0.1111
""",
    ("trec", "-c -J -M2 -mnum_ret -miprec_at_recall.0,0.5 -mutility.2,-1,0.5,0"): """\
num_ret|all|3
iprec_at_recall_0.00|all|0.5000
iprec_at_recall_0.50|all|0.5000
utility_2,-1,0.5,0|all|1.1667
""",
    ("trec10", "-c -J -M2 -mnum_ret -miprec_at_recall.0,0.5 -mutility.2,-1,0.5,0"): """\
num_ret|all|3
iprec_at_recall_0.00|all|  -nan
iprec_at_recall_0.50|all|0.5000
utility_2,-1,0.5,0|all|1.3333
""",
    ("trec", "-q -mndcg.1=3,2=9,4=4.5 -m11pt_avg..25,.5,.75 -mndcg_cut.2,5.4"): """\
11pt_avg_.25,.5,.75|10|0.5000
ndcg_1=3,2=9,4=4.5|10|0.6309
ndcg_cut_2|10|0.6309
ndcg_cut_5|10|0.6309
11pt_avg_.25,.5,.75|2|0.6667
ndcg_1=3,2=9,4=4.5|2|0.6590
ndcg_cut_2|2|0.4796
ndcg_cut_5|2|0.6697
11pt_avg_.25,.5,.75|all|0.5833
ndcg_1=3,2=9,4=4.5|all|0.6450
ndcg_cut_2|all|0.5553
ndcg_cut_5|all|0.6503
""",
    ("trec10", "-c -mset -munj -mrbp -mrbp_resid"): """\
runid|all|last
num_q|all|3
num_ret|all|6
num_rel|all|4
num_rel_ret|all|3
utility|all|0.0000
set_P|all|0.3333
set_relative_P|all|0.6667
set_recall|all|0.6667
set_map|all|0.3333
set_F|all|0.4444
rbp|all|0.0735
rbp_resid|all|0.2763
unj_5|all|0.1333
unj_10|all|0.0667
unj_20|all|0.0333
""",
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    return [str(tmp_path / "qrels"), str(tmp_path / "run")]


def printed(capsys, *arguments):
    code = cli.main(["trec", "--quiet", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(("convention", "options"), PRINTED)
def test_lines_are_those_of_trec_eval(capsys, files, convention, options):
    given = ["--convention", convention, "--format", "trec_eval", *options.split(), *files]
    code, out, err = printed(capsys, *given)
    wanted = ""
    for line in PRINTED[convention, options].splitlines():
        name, query, value = line.split("|")
        wanted += f"{name:<22}\t{query}\t{value}\n"
    assert (code, err) == (0, "")
    assert out == wanted


@pytest.mark.parametrize(
    ("options", "long"),
    [
        ("-q -l2 -M3 -c -J", "--per-query --level 2 --depth 3 --complete --judged-only"),
        ("-qcJ -m official", "--per-query --complete --judged-only"),
    ],
)
def test_options_have_two_spellings(capsys, files, options, long):
    found = printed(capsys, "--format", "trec_eval", *options.split(), *files)
    assert found == printed(capsys, *long.split(), "--format", "trec_eval", *files)
    assert found[0] == 0
    assert "iprec_at_recall_0.00  \t2\t" in found[1]


def test_measures_by_trec_eval_names_in_other_formats(capsys, files):
    code, out, _ = printed(capsys, "-m", "P.5,1", "-m", "map", "-m", "runid", "--format", "csv", *files)
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()[1:4]] == ["mAP", "P@1", "P@5"]


def test_a_level_above_every_grade_gives_zeros(capsys, tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 0\n")
    (tmp_path / "run").write_text("q1 Q0 a 1 .9 t\nq1 Q0 b 2 .8 t\n")
    files = tmp_path / "qrels", tmp_path / "run"
    code, out, _ = printed(capsys, "--format", "trec_eval", "-l", "2", "-m", "map", "-m", "num_q", *files)
    assert (code, [line.split() for line in out.splitlines()]) == (0, [["num_q", "all", "1"], ["map", "all", "0.0000"]])


def test_a_run_without_a_name_is_called_as_its_file(capsys, tmp_path, files):
    (tmp_path / "mine.json").write_text('{"2": {"c": 1.0}}')
    _, out, _ = printed(capsys, "--format", "trec_eval", "-m", "runid", files[0], tmp_path / "mine.json")
    assert out == "runid                 \tall\tmine\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-m foo", "is no measure of trec_eval 9 that detmap has; one of: official, set, all_trec, runid"),
        ("-m unj", "is no measure of trec_eval 9"),
        ("-m prefs", "no measures of preferences"),
        ("-m P.", "numbers belong behind the dot"),
        ("-m P.0,5", "a cutoff must be at least 1"),
        ("-m P.5,5", "a cutoff is there twice"),
        ("-m P.x", "'x' is no number"),
        ("-m ndcg.10", "gains of grades above 0 for ndcg, as in ndcg.1=3,2=9"),
        ("-m ndcg.0=1", "gains of grades above 0"),
        ("-m G.1=3", "G.1=3: detmap takes gains of grades above 0 for ndcg"),
        ("-m 11pt_avg.0.5,0.25", "the recalls must ascend"),
        ("--metrics map", "does not go with --metrics; measures are named by -m"),
        ("--compare", "--format trec_eval does not go with --compare"),
        ("--out x.json", "--format trec_eval does not go with --out"),
    ],
)
def test_what_cannot_be_printed_is_one_line(capsys, files, options, message):
    code, out, err = printed(capsys, "--format", "trec_eval", *files, *options.split())
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_several_runs_and_two_lists_of_measures_are_refused(capsys, files):
    assert "is of one run" in printed(capsys, "--format", "trec_eval", *files, files[1])[2]
    assert "-m does not go with --metrics" in printed(capsys, "-m", "map", "--metrics", "map", *files)[2]
    assert "-m does not go with --card" in printed(capsys, "-m", "map", "--card", "card.json", *files)[2]


@pytest.mark.real_data
@pytest.mark.skipif(not TREC.is_dir(), reason=f"{TREC} is not there")
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("output", "options", "qrels", "run"),
    [
        ("out.test", "", "qrels.test", "results.test"),
        ("out.test.a", "-m all_trec", "qrels.test", "results.test"),
        ("out.test.aq", "-m all_trec -q", "qrels.test", "results.test"),
        ("out.test.aqc", "-m all_trec -q -c", "qrels.test", "results.trunc"),
        ("out.test.aqcM", "-m all_trec -q -c -M100", "qrels.test", "results.trunc"),
        ("out.test.aql", "-m all_trec -mrelstring.20 -q -l2", "qrels.rel_level", "results.test"),
        ("out.comment.test", "", "qrels.comment.test", "results.comment.test.gz"),
    ],
)
def test_outputs_of_trec_eval_10_are_reproduced(capsys, output, options, qrels, run):
    given = ["--convention", "trec10", "--format", "trec_eval", *options.split(), TREC / qrels, TREC / run]
    assert printed(capsys, *given) == (0, (TREC / output).read_text(), "")
