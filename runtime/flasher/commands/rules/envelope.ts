/** Earlier line: the JSON documents of the commands ("JSON envelope"). */
import { commandName, type Command } from '#kit/terminal/command/rules/command.ts'
import type { FaultCode } from '#kit/foundation/fault.ts'
import { renderJson, renderJsonLine } from '#kit/foundation/json-text.ts'

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
