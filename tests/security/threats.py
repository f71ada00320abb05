"""The 58 rows of the threat list, and the tests that hold each of them.

A row without a test is in `PHYSICAL`, with what makes a test impossible; there may be three.
"""

from __future__ import annotations

from dataclasses import dataclass

ACTIONS = "tests/unit/actions/test_workflow_commands.py::"
ARCHITECTURE = "tests/contract/test_architecture.py::"
ANSWER = "tests/unit/sandbox/test_worker_answer.py::"
APPLY = "tests/integration/test_apply_and_cleanup.py::"
BUDGET = "tests/unit/report/test_budget.py::"
CAGE = "tests/integration/test_worker_process.py::"
CHILD = "tests/unit/sandbox/test_worker_environment.py::"
CLIENT = "tests/integration/test_github_client.py::"
COMMENTS = "tests/unit/github/test_comments.py::"
CONTAINER = "tests/security/test_hostile_container.py::"
DISPATCH = "tests/e2e/test_dispatch.py::"
DOCKERFILE = "tests/contract/test_dockerfile.py::"
EVENT = "tests/unit/actions/test_event.py::"
FAULTS = "tests/integration/test_github_faults.py::"
FILES = "tests/unit/actions/test_step_files.py::"
FORGED = "tests/e2e/test_forged_comment.py::"
GIT = "tests/unit/sandbox/test_git_reads.py::"
IMAGE = "tests/container/test_image.py::"
LAUNCH = "tests/unit/sandbox/test_launch_checks.py::"
LIFE = "tests/e2e/test_life.py::"
LINTERS = "tests/contract/test_linters.py::"
MARKDOWN = "tests/unit/report/test_markdown.py::"
PROBE = "tests/security/test_hostile_probe.py::"
REDACT = "tests/unit/redaction/test_redaction.py::"
REFUSALS = "tests/e2e/test_refusals.py::"
RETRY = "tests/unit/github/test_github_failures.py::"
SAFETY = "tests/unit/report/test_text_safety.py::"
SHOWN = "tests/unit/report/test_redaction.py::"
SMALL = "tests/security/test_other_threats.py::"
STREAMS = "tests/unit/sandbox/test_worker_streams.py::"
SWEEP = "tests/unit/worker_client/test_sweep_activity.py::"
TEMPLATES = "tests/unit/report/test_templates.py::"
UNCAGED = "tests/security/test_uncaged.py::"
WALLS = "tests/security/test_program_starts.py::"
WORKFLOWS = "tests/contract/test_workflows.py::"
WRITES = "tests/integration/test_github_comments.py::"
COPY = "tests/unit/sandbox/test_workspace_copy.py::"
ACTIVITY = "tests/unit/actions/test_choose_activity.py::"

EVERYTHING = f"{PROBE}test_probe__everything_that_it_tries_is_stopped"
IN_IMAGE = f"{CONTAINER}test_probe__in_the_image_everything_is_stopped"


@dataclass(frozen=True)
class Row:
    """One threat or fault, and the ids of the tests that hold it."""

    number: int
    threat: str
    tests: tuple[str, ...]


def _row(number: int, threat: str, *tests: str) -> Row:
    return Row(number, threat, tests)


ROWS: tuple[Row, ...] = (
    _row(1, "Fork with secrets: reviewed from the base branch instead",
         f"{REFUSALS}test_fork__is_reviewed_without_a_comment_and_never_applied",
         f"{ACTIVITY}test_choose__untrusted_review_has_no_secrets_and_no_comment",
         f"{DISPATCH}test_dispatch__without_a_token__loads_nothing",
         f"{EVENT}test_fork__is_another_repository_or_one_that_is_gone"),
    _row(2, "Unsafe triggers: none is used",
         f"{ACTIVITY}test_choose__target_trigger_is_refused_with_the_safe_one",
         f"{ACTIVITY}test_choose__matrix",
         f"{WORKFLOWS}test_review__runs_on_pull_request_or_by_hand_and_never_on_its_target"),
    _row(3, "PR code reads the token in its environment", EVERYTHING,
         f"{CHILD}test_build__nothing_of_the_runner",
         f"{CAGE}test_environment__is_exactly_what_was_built"),
    _row(4, "PR code reads other processes; uid 0 is refused in the container", IN_IMAGE,
         f"{UNCAGED}test_uncaged__the_projects_code_finds_no_token_in_any_process",
         f"{UNCAGED}test_uncaged__is_refused_unless_that_is_said",
         f"{CAGE}test_break_out__everything_is_closed",
         f"{CAGE}test_environment__another_user_without_groups_and_rights",
         f"{CAGE}test_start__the_container_refuses_a_root_worker",
         f"{LAUNCH}test_check__no_separation"),
    _row(5, "PR code writes the runner's command files", EVERYTHING, IN_IMAGE,
         f"{LAUNCH}test_check__open_doors"),
    _row(6, "PR code uses the Docker socket", EVERYTHING, IN_IMAGE,
         f"{IMAGE}test_worker__cannot_use_the_docker_socket"),
    _row(7, "PR code uses cache and OIDC tokens", EVERYTHING, IN_IMAGE,
         f"{CHILD}test_build__never_a_credential_whatever_is_asked"),
    _row(8, ".env moves the bot's requests, its PATH, its libraries",
         f"{PROBE}test_probe__its_dotenv_does_not_move_the_bots_requests",
         f"{RETRY}test_safe_api_url__refuses_what_a_token_must_not_go_to"),
    _row(9, "Code in YAML, SQL, configuration and macros", EVERYTHING,
         f"{ARCHITECTURE}test_imports__keep_every_contract",
         f"{ARCHITECTURE}test_import__through_a_wall_is_noticed"),
    _row(10, "Poisoned cache", f"{CAGE}test_cache__is_gone_after_every_end",
         f"{CAGE}test_cache__a_planted_one_is_not_there", EVERYTHING),
    _row(11, "Forged report", f"{PROBE}test_probe__a_forged_answer_is_refused_and_nothing_of_it_is_shown",
         f"{CONTAINER}test_probe__in_the_image_a_forged_answer_is_refused",
         f"{ANSWER}test_read_answer__forged", f"{ANSWER}test_read_answer__any_bytes",
         f"{ANSWER}test_read_answer__about_something_else",
         f"{CAGE}test_answer__endless"),
    _row(12, "Workflow commands with ::", f"{ACTIONS}test_worker_line__issues_nothing",
         f"{ACTIONS}test_worker_line__weak_token_is_refused", EVERYTHING),
    _row(13, "Older commands in the middle of a line", f"{ACTIONS}test_plain_line__cases",
         f"{ACTIONS}test_mutation__a_line_prefix_alone_is_not_enough", EVERYTHING),
    _row(14, "Our own annotations", f"{ACTIONS}test_annotation__arrives_whole",
         f"{ACTIONS}test_mutation__bugs_of_the_models_are_caught",
         f"{ACTIONS}test_mutation__identity_instead_of_an_escape_is_caught"),
    _row(15, "Injected outputs", f"{FILES}test_outputs__round_trip",
         f"{FILES}test_format_output__value_with_the_delimiter",
         f"{FILES}test_format_output__bad_name",
         f"{FILES}test_mutation__other_ways_to_write_outputs_are_caught"),
    _row(16, "Derived secrets without a mask", f"{ACTIONS}test_masks__come_before_everything_else",
         f"{ACTIONS}test_masks__blank_and_short_secrets_are_left_out"),
    _row(17, "Secrets in the comment", f"{SHOWN}test_secret__is_gone_from_every_document",
         "tests/e2e/test_secrets.py::test_review__that_fails_shows_nothing_of_it",
         f"{SHOWN}test_secret__is_never_cut_in_two",
         f"{SAFETY}test_redacted__reaches_every_field_that_holds_text",
         "tests/e2e/test_two_processes.py::"
         "test_review__of_a_model_that_raises_a_password__shows_it_nowhere"),
    _row(18, "Secrets over two reads", f"{REDACT}test_stream__any_pieces_give_the_same",
         f"{REDACT}test_mutation__redacting_each_piece_alone_is_caught",
         f"{STREAMS}test_log__secrets_over_two_reads"),
    _row(19, "The token in arguments, repr, traceback, cassette",
         f"{SMALL}test_settings__show_no_token", f"{SMALL}test_crash__shows_no_token",
         f"{SMALL}test_repository__holds_nothing_that_looks_like_a_token",
         f"{REDACT}test_redactor__does_not_show_secrets",
         f"{LAUNCH}test_launch__does_not_show_the_environment",
         f"{FAULTS}test_fault__failures_show_neither_token_nor_a_library_s_words"),
    _row(20, "Mentions, references, URLs in names",
         f"{SAFETY}test_comment__hostile_text_changes_no_element",
         f"{SAFETY}test_planned_comment__any_text_stays_inert_at_any_budget",
         f"{TEMPLATES}test_template__prints_nothing_raw",
         f"{TEMPLATES}test_environment__a_forgotten_filter_fails_safe"),
    _row(21, "Breaking out of code spans and fences",
         f"{MARKDOWN}test_escape__keeps_any_text_inert_and_whole",
         f"{MARKDOWN}test_escape__its_check_fails_without_it"),
    _row(22, "HTML in names", f"{SAFETY}test_comment__hostile_text_changes_no_element",
         f"{PROBE}test_probe__markup_in_a_believed_answer_stays_text",
         f"{CONTAINER}test_probe__in_the_image_markup_stays_text"),
    _row(23, "Broken tables", f"{SAFETY}test_comment__hostile_text_changes_no_element",
         f"{MARKDOWN}test_escape__keeps_the_corpus_inert"),
    _row(24, "A forged marker", f"{COMMENTS}test_publish__forged_marker_is_no_comment_of_ours",
         f"{COMMENTS}test_choose__is_by_marker_and_author",
         f"{FORGED}test_no_go__that_the_comment_calls_go__is_refused_to_a_writer",
         f"{FORGED}test_comment__that_names_what_is_not_there__builds_nothing",
         f"{COMMENTS}test_publish__finds_the_comment_on_a_later_page"),
    _row(25, "A marker that is broken from inside", f"{COMMENTS}test_marker__round_trip",
         f"{COMMENTS}test_marker__is_one_html_comment_and_nothing_else",
         f"{COMMENTS}test_marker__without_its_escape_the_properties_do_not_hold"),
    _row(26, "Own identity unknown", f"{CLIENT}test_my_login__falls_back_to_the_actions_bot",
         f"{CLIENT}test_my_login__of_a_workflow_token_is_one_graphql_request",
         f"{CLIENT}test_my_login__of_a_person_is_one_rest_request"),
    _row(27, "Invisible and control characters",
         f"{MARKDOWN}test_reveal__leaves_nothing_invisible",
         f"{MARKDOWN}test_prose__right_to_left_letters_cannot_reorder_our_text",
         f"{SAFETY}test_terminal__no_text_moves_the_cursor",
         f"{CAGE}test_environment__is_exactly_what_was_built"),
    _row(28, "Bodies that are too large", f"{BUDGET}test_comment__is_whole_at_any_budget",
         f"{BUDGET}test_comment__five_thousand_models_do_not_fail",
         f"{BUDGET}test_comment__multi_byte_characters_are_never_cut_in_two",
         f"{FILES}test_summary__larger_than_the_runner_takes"),
    _row(29, "Template injection", f"{SAFETY}test_comment__data_is_no_template",
         f"{TEMPLATES}test_environment__is_sandboxed",
         f"{TEMPLATES}test_environment__an_undefined_name_is_an_error"),
    _row(30, "Applying something else than was reviewed: exit 3",
         f"{REFUSALS}test_apply__of_an_id_that_is_not_the_plan__is_refused",
         f"{REFUSALS}test_apply__where_the_base_changed_the_plan__shows_the_difference",
         f"{APPLY}test_apply__of_another_plan__is_refused_and_touches_nothing",
         "tests/unit/protocol/test_plan_identity.py::test_plan_id__changes_with_every_field"),
    _row(31, "An older run overwrites a newer result",
         f"{COMMENTS}test_publish__older_run_that_ends_last_writes_nothing",
         f"{COMMENTS}test_publish__any_interleaving_shows_the_youngest_run_that_wrote"),
    _row(32, "Two comments", f"{COMMENTS}test_publish__two_runs_leave_one_comment_of_the_younger",
         f"{WRITES}test_sticky__post_in_doubt_leaves_one_comment",
         f"{WRITES}test_create_comment__that_was_taken_after_all_is_not_written_twice"),
    _row(33, "Server errors and lost connections", f"{FAULTS}test_fault__that_passes_is_waited_for",
         f"{FAULTS}test_fault__that_lasts_ends_within_the_budget",
         f"{FAULTS}test_fault__silence_is_a_timeout",
         f"{FAULTS}test_fault__no_server_at_all"),
    _row(34, "Rate limits and missing permissions", f"{RETRY}test_classify__table",
         f"{RETRY}test_decide__table",
         f"{RETRY}test_to_error__rate_limit_says_until_when",
         f"{WRITES}test_dispatch_workflow__without_the_permission_names_it"),
    _row(35, "At most 6 requests, a second between writes",
         f"{WRITES}test_review__with_a_changed_decision_costs_six_requests_and_three_writes",
         f"{WRITES}test_review__later_costs_five_requests_and_two_writes_and_one_more_per_page",
         f"{WRITES}test_writes__are_a_second_apart_and_reads_are_not"),
    _row(36, "GitHub is down after a good apply",
         f"{LIFE}test_life__closed_unmerged_after_github_was_down_for_the_apply"),
    _row(37, "The worker hangs", f"{CAGE}test_deadline__a_deaf_worker_and_its_family_are_killed",
         f"{CAGE}test_orphans__do_not_outlive_the_worker",
         f"{CAGE}test_fork_storm__nothing_is_left", EVERYTHING),
    _row(38, "Cancelled in the middle",
         "tests/container/test_signals.py::test_signal__ends_a_run_that_waits_for_github",
         f"{CAGE}test_cancel__a_deaf_worker_is_killed_after_its_grace",
         f"{CAGE}test_cancel__the_caller_is_told_while_the_worker_lives",
         f"{CAGE}test_bot__the_second_signal_ends_everything_at_once"),
    _row(39, "A half-applied environment, on a real engine",
         "tests/security/test_half_applied.py::"
         "test_apply__killed_at_a_stage__is_told_and_finished_by_the_next"),
    _row(40, "Apply and cleanup at the same time",
         f"{WORKFLOWS}test_apply_and_cleanup__wait_for_each_other_and_are_never_cancelled",
         f"{WORKFLOWS}test_concurrency__is_said_on_purpose",
 "tests/security/test_retry_reason.py::test_another_plan_on_the_same_environment__is_never_retried",
 "tests/security/test_retry_reason.py::test_two_writers_on_one_table__are_retried"),
    _row(41, "Cleanup never ran: the sweep acts, --dry-run is an option",
         f"{SWEEP}test_sweep__removes_what_is_ours_and_closed_and_nothing_else",
         f"{SWEEP}test_sweep__where_github_does_not_answer_nothing_is_removed",
         f"{SWEEP}test_sweep__dry_run_names_and_leaves",
         f"{SWEEP}test_sweep__over_its_limit_takes_the_oldest_and_leaves_the_rest_for_the_next"),
    _row(42, "Cleanup of the wrong thing; a command may clean an open PR's",
         f"{APPLY}test_cleanup__of_a_name_that_is_no_pr_environment__is_refused",
         "tests/unit/protocol/test_environment_name.py::test_of__is_a_prefix_and_a_number_and_no_other",
         "tests/unit/protocol/test_environment_name.py::test_of__never_comes_from_text",
         f"{DISPATCH}test_dispatch__of_a_cleanup_by_comment__asks_who_wrote_it",
         f"{APPLY}test_life__review_apply_review_cleanup_twice"),
    _row(43, "A cleanup that failed in part",
         f"{APPLY}test_cleanup__keeps_what_the_environment_did_not_make",
         "tests/integration/test_sweep.py::"
         "test_sweep__that_cannot_finish_one_removes_the_others_and_is_exit_4"),
    _row(44, "Cleanup runs PR code",
         f"{WORKFLOWS}test_cleanup__checks_out_the_default_branch_and_nothing_of_the_pull_request",
         f"{APPLY}test_cleanup__with_models_that_no_longer_parse__works"),
    _row(45, "Traps in the checkout's git configuration", EVERYTHING, IN_IMAGE,
         f"{GIT}test_traps__no_program_of_the_configuration_runs",
         f"{GIT}test_traps__the_trap_would_spring",
         f"{GIT}test_traps__a_checkout_of_another_owner"),
    _row(46, "Credentials that checkout leaves behind",
         f"{WORKFLOWS}test_checkout__leaves_no_credentials_behind", EVERYTHING),
    _row(47, "Links and .. in paths", EVERYTHING, IN_IMAGE,
         f"{COPY}test_copy__links_that_leave_are_dropped",
         f"{COPY}test_project_paths__all_problems_in_one_message",
         f"{COPY}test_read_inside__only_regular_files_of_bounded_size",
         "tests/unit/github/test_artifact_archive.py::test_read_member__refuses"),
    _row(48, "Bad inputs",
         "tests/e2e/test_bad_input.py::test_bad_input__before_anything_is_done__is_one_message",
         "tests/contract/test_action_metadata.py::test_action__what_its_files_repeat__is_made_of_its_inputs"),
    _row(49, "A workflow's variables bend the container",
         f"{IMAGE}test_entry__a_hostile_workflow_environment_changes_nothing"),
    _row(50, "Supply chain of the image",
         f"{DOCKERFILE}test_base__is_debian_bookworm_slim_by_digest",
         f"{DOCKERFILE}test_pip__takes_only_locked_wheels_or_what_it_has_built",
         f"{DOCKERFILE}test_lock__every_package_has_one_version_and_a_hash",
         f"{WORKFLOWS}test_release__attests_and_names_the_digest",
         f"{LINTERS}test_hadolint__finds_nothing"),
    _row(51, "Our own workflows", f"{LINTERS}test_zizmor__finds_nothing",
         f"{LINTERS}test_schema__is_kept",
         f"{WORKFLOWS}test_permissions__nothing_by_default_and_a_reason_for_each_grant",
         f"{WORKFLOWS}test_actions__are_pinned_by_commit_with_their_version_beside"),
    _row(52, "Unsafe Python", f"{SMALL}test_bandit__finds_nothing_in_the_package",
         f"{SMALL}test_bandit__notices_a_shell"),
    _row(53, "Arguments from the text of a pull request",
         f"{WALLS}test_programs__are_started_from_lists_and_never_through_a_shell",
         f"{GIT}test_resolve__no_options_and_no_guesses",
         f"{GIT}test_commits__only_whole_ids"),
    _row(54, "Errors that show internals",
         "tests/e2e/test_bad_input.py::test_bad_input__of_a_pull_request__is_in_its_comment",
         f"{FAULTS}test_fault__failures_show_neither_token_nor_a_library_s_words",
         f"{ANSWER}test_read_answer__the_refusal_shows_nothing_of_it"),
    _row(55, "The machine's locale", f"{SMALL}test_locale__of_the_machine_changes_nothing",
         f"{IMAGE}test_entry__a_hostile_workflow_environment_changes_nothing"),
    _row(56, "Surprises in the event",
         f"{EVENT}test_parse_event__each_missing_key_is_an_event_or_is_named",
         f"{EVENT}test_parse_event__any_shape_is_an_event_or_bad_input",
         f"{EVENT}test_read_event__any_text_is_an_event_or_bad_input"),
    _row(57, "Dependabot: reviewed from the base branch, by the author's login",
         f"{EVENT}test_dependabot__is_decided_by_the_author_and_not_by_the_sender",
         f"{ACTIVITY}test_choose__untrusted_review_has_no_secrets_and_no_comment"),
    _row(58, "The worker sends something out: documented, cannot be stopped in one container",
         f"{SMALL}test_security_page__says_what_the_cage_cannot_stop"),
)  # fmt: skip

# Row -> what makes a test of it impossible here.
PHYSICAL: dict[int, str] = {}
