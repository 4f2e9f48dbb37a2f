/** Earlier line: maps faults to exit codes ("Exit codes"). */
import { type Entry, commandName, type Command } from '#kit/terminal/command/rules/command.ts'
import type { FaultCode } from '#kit/foundation/fault.ts'
import { renderJson, renderJsonLine } from '#kit/foundation/json-reader.ts'

export const SUCCESS = 0
/** Also for a surprise without a code of its own. */
export const FAILED = 1
/** What a shell reports for SIGINT; SIGTERM and SIGHUP have other numbers. */
const CANCELLED = 130

export const EXIT = {
  misuse: 2,
  'input-missing': 2,
  'input-invalid': FAILED,
  'plan-refused': FAILED,
  'source-broken': FAILED,
  'image-broken': FAILED,
  'digest-mismatch': FAILED,
  'write-failed': FAILED,
  'verify-failed': FAILED,
  'target-raced': 5,
  'provision-failed': FAILED,
  'root-required': 3,
  'tool-missing': 4,
  'tool-failed': FAILED,
  cancelled: CANCELLED,
  'not-found': FAILED,
  'login-required': FAILED,
  forbidden: FAILED,
  conflict: FAILED,
  stale: FAILED,
  'too-large': FAILED,
  busy: FAILED,
  'no-leader': FAILED,
  'storage-full': FAILED,
  'upstream-failed': FAILED,
} as const satisfies Record<FaultCode, number>

/** As help and manual list them; the first six rows are the specification's. */
export const EXIT_CODES: readonly Entry[] = [
  ['0', 'success'],
  ['1', 'the operation failed: the plan was refused, a write or a provisioning step failed'],
  ['2', 'misuse: wrong arguments, or a required flag or input file is missing'],
  ['3', 'root is required'],
  ['4', 'a required tool is not installed'],
  ['5', 'the target changed between the check and the first byte'],
  ['130, 143, 129', 'cancelled by SIGINT, SIGTERM or SIGHUP'],
]

// Earlier line: the JSON documents of the commands ("JSON envelope").

/** Incremented by incompatible changes of a document ("Versioning"). */
const SCHEMA_VERSION = '1'

export type DocumentFields = Readonly<Record<string, unknown>>

/** With a line end. `oneLine`: as the last line of an event stream must be. */
export function renderEnvelope(
  command: Pick<Command, 'words'>,
  fields: DocumentFields,
  { oneLine }: { readonly oneLine: boolean },
): string {
  const document = { schema_version: SCHEMA_VERSION, command: commandName(command), ...fields }
  return `${oneLine ? renderJsonLine(document) : renderJson(document)}\n`
}

interface ErrorFields {
  readonly code: FaultCode | 'unexpected'
  readonly message: string
  readonly hint?: string
}

export const errorFields = (
  code: ErrorFields['code'],
  message: string,
  hint: string | undefined,
): { readonly error: ErrorFields } => ({
  error: { code, message, ...(hint === undefined ? {} : { hint }) },
})
