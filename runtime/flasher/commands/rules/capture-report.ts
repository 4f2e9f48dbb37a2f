/** Earlier line: what `flasher capture` says of a disk, as text and as fields of the document. */
import type { CapturedPart } from '#engine/capture/rules/capture.ts'
import type { FoundFile } from '#engine/capture/rules/identity.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderExactSize, renderSize } from '#kit/foundation/size.ts'
import type { DocumentFields } from './exit-codes.ts'

type ReportedPart = CapturedPart & { readonly files: readonly FoundFile[] | null }

export interface CaptureFindings {
  readonly source: string
  readonly output: string
  readonly sizeBytes: number
  readonly usedBytes: number
  readonly generalize: boolean
  readonly parts: readonly ReportedPart[]
  readonly warnings: readonly string[]
}

const listPaths = (parts: readonly ReportedPart[]) =>
  parts.flatMap(({ files }) => (files ?? []).map(({ path }) => path))

export const findingsFields = (findings: CaptureFindings): DocumentFields => ({
  source: findings.source,
  output: findings.output,
  disk_size_bytes: findings.sizeBytes,
  used_bytes: findings.usedBytes,
  parts: findings.parts.map(({ number, type, bytes, usedBytes, whole }) => ({
    number,
    type,
    size_bytes: bytes,
    used_bytes: usedBytes,
    whole,
  })),
  generalized: findings.generalize ? listPaths(findings.parts) : null,
  warnings: findings.warnings,
})

export function renderFindings(findings: CaptureFindings): string {
  const { source, sizeBytes, usedBytes, parts, generalize } = findings
  const lines = parts.map((part) => printable(`  ${renderPart(part)}`))
  const cleared = generalize
    ? listPaths(parts).map((path) => `  cleared in the image: ${path}`)
    : []
  return [
    `${source}: ${renderExactSize(sizeBytes)}, ${renderSize(usedBytes)} to read`,
    ...lines,
    ...cleared.map(printable),
    '',
  ].join('\n')
}

function renderPart({ number, type, bytes, usedBytes, whole }: ReportedPart): string {
  const what = `${number === 0 ? 'no partitions' : `partition ${number}`}: ${type ?? 'unknown'}`
  return whole === null
    ? `${what}, ${renderSize(usedBytes)} used of ${renderSize(bytes)}`
    : `${what}, ${renderSize(bytes)}, read whole: ${whole}`
}
