/** Earlier line: the JSON documents of the commands ("JSON envelope"). */
import { commandName, type Command } from '../../../kit/terminal/command/rules/command.ts'
import type { FaultCode } from '../../../kit/foundation/fault.ts'
import { renderJson, renderJsonLine } from '../../../kit/foundation/json-text.ts'

/** Incompatible changes of a document's structure bump it ("Versioning"). */
const SCHEMA_VERSION = '1'

export type DocumentFields = Readonly<Record<string, unknown>>

/**
 * Renders a document of a command with its line end; `fields` follow in the order given. With
 * `oneLine` it is one line, as the last one of an event stream must be.
 */
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

/**
 * Returns what every failure has in its document, alone or behind the fields that were known by
 * then.
 */
export const errorFields = (
  code: ErrorFields['code'],
  message: string,
  hint: string | undefined,
): { readonly error: ErrorFields } => ({
  error: { code, message, ...(hint === undefined ? {} : { hint }) },
})
