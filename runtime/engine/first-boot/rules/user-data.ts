/** Tells by its beginning whether cloud-init knows what a user-data file is: it ignores any other one. */
import { gunzipSync } from 'node:zlib'

/** cloud-init ignores case and leading white space. */
const BEGINNINGS = [
  '#!',
  '#cloud-boothook',
  '#cloud-config',
  '#include',
  '#part-handler',
  '#upstart-job',
  '## template: jinja',
]
/** cloud-init looks so far for the header of a MIME message. */
const MIME_BYTES = 4096
/** More than cloud-init is ever given. */
const MAX_BYTES = 64 * 2 ** 20

/** Null: cloud-init reads it, or it is empty. */
export function findUserDataProblem(content: Buffer): string | null {
  const unpacked = isGzip(content) ? unpack(content) : content
  if (unpacked === null) return 'its gzip data is damaged'
  if (isKnown(unpacked)) return null
  const text = unpacked.toString('utf8', 0, MIME_BYTES)
  const begins = text.startsWith('\ufeff')
    ? 'begins with a byte order mark'
    : isKnown(Buffer.from(text, 'base64'))
      ? 'is encoded in base64'
      : 'begins with no header that cloud-init knows'
  return `it ${begins}, so cloud-init would ignore it; ${HEADERS}`
}

const HEADERS =
  'the first line has to be #cloud-config, #! and a program, or another header of cloud-init'

function isKnown(content: Buffer): boolean {
  const head = content.toString('latin1', 0, MIME_BYTES).toLowerCase()
  const begins = head.trimStart()
  const isMime = head.includes('mime-version:')
  return begins === '' || isMime || BEGINNINGS.some((known) => begins.startsWith(known))
}

const isGzip = (content: Buffer) => content.length > 2 && content.readUInt16BE(0) === 0x1f8b

function unpack(content: Buffer): Buffer | null {
  try {
    return gunzipSync(content, { maxOutputLength: MAX_BYTES })
  } catch {
    return null
  }
}
