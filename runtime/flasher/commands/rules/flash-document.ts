/** Earlier line: how a flash ended, by the document of `flasher flash --json` and its exit code. */
import type { ReportedEnd } from '../../../engine/flash/rules/run-report.ts'
import { parseJson } from '../../../kit/foundation/json-reader.ts'
import { printable } from '../../../kit/foundation/printable.ts'
import { isRecord } from '../../../kit/foundation/shape.ts'
import { SUCCESS } from './exit-codes.ts'

/** A program that was killed leaves no document. */
export function parseFlashEnd(document: string, code: number): ReportedEnd {
  const parsed = parseJson(document)
  const { result, error } = isRecord(parsed) ? parsed : {}
  if (code === SUCCESS) return parseResult(isRecord(result) ? result : {})
  const { code: name, message, hint } = isRecord(error) ? error : {}
  const kind = name === 'cancelled' ? 'cancelled' : 'failed'
  if (typeof message !== 'string') return { kind, reason: `it ended with exit code ${code}` }
  const reason = typeof hint === 'string' ? `${message.replace(/\.$/, '')}. ${hint}` : message
  return { kind, reason: printable(reason) }
}

const parseResult = ({
  bytes_written,
  verified,
  warnings,
}: Readonly<Record<string, unknown>>): ReportedEnd => ({
  kind: 'done',
  bytesWritten: typeof bytes_written === 'number' ? bytes_written : 0,
  verified: verified === true,
  warnings: Array.isArray(warnings) ? warnings.filter((words) => typeof words === 'string') : [],
})
