/** Who signed a program of UEFI: the chain of one PKCS #7 signature (RFC 2315, Authenticode). Hostile. */
import { createHash, verify, X509Certificate } from 'node:crypto'

export interface SigningChain {
  /** From the signer on. */
  readonly certificates: readonly SigningCertificate[]
  /** Who issued the last of them. */
  readonly issuer: string
}

interface SigningCertificate {
  /** SHA-256 of its DER. */
  readonly fingerprint: string
  /** SHA-256 of what its issuer signed, as some lists of revoked ones have it. */
  readonly contentFingerprint: string
  /** The common name, for people. */
  readonly name: string
}

/** A chain of Microsoft's has two, beside those of a time stamp. */
const MAX_CERTIFICATES = 16
const MAX_DEPTH = 5

/** Null: it is damaged, of another program, or by no certificate that it holds. `digest`: the program's. */
export function readChain(der: Buffer, digest: string): SigningChain | null {
  const [, content] = childrenOf(readElement(der))
  const [signed] = childrenOf(content)
  const fields = childrenOf(signed)
  const spc = childrenOf(childrenOf(fields[2])[1])[0]
  const listed = fields.find(({ tag }) => tag === 0xa0)
  const signer = childrenOf(childrenOf(fields.findLast(({ tag }) => tag === 0x31))[0])
  const said = childrenOf(childrenOf(spc)[1])[1]
  if (spc === undefined || said?.value.toString('hex') !== digest) return null
  const certificates = childrenOf(listed)
    .slice(0, MAX_CERTIFICATES)
    .flatMap(({ whole }) => parseCertificate(whole) ?? [])
  const first = certificates.find((each) => isSigner(each, signer, spc.value))
  return first === undefined ? null : climb(first, certificates)
}

/** What is signed are the attributes, one of which is the digest of the content. */
function isSigner(certificate: X509Certificate, signer: readonly Element[], content: Buffer) {
  const attributes = signer.find(({ tag }) => tag === 0xa0)
  const signature = signer.findLast(({ tag }) => tag === 0x04)
  if (attributes === undefined || signature === undefined) return false
  const named = createHash('sha256').update(content).digest()
  const hasDigest = childrenOf(attributes).some((attribute) => {
    const [type, values] = childrenOf(attribute)
    return type?.value.equals(MESSAGE_DIGEST) === true && childrenOf(values)[0]?.value.equals(named)
  })
  const set = Buffer.from(attributes.whole)
  set[0] = 0x31
  return hasDigest && isTrue(() => verify('sha256', set, certificate.publicKey, signature.value))
}

/** 1.2.840.113549.1.9.4 */
const MESSAGE_DIGEST = Buffer.from('2a864886f70d010904', 'hex')

function climb(first: X509Certificate, all: readonly X509Certificate[]): SigningChain {
  const chain = [first]
  for (let last: X509Certificate | undefined = first; chain.length < MAX_DEPTH;) {
    const below: X509Certificate = last
    last = all.find((each) => !chain.includes(each) && isIssuedBy(below, each))
    if (last === undefined) break
    chain.push(last)
  }
  return { certificates: chain.map(describe), issuer: oneLine(chain.at(-1)?.issuer) }
}

const isIssuedBy = (below: X509Certificate, above: X509Certificate) =>
  isTrue(() => below.checkIssued(above) && below.verify(above.publicKey))

export function describe(certificate: X509Certificate): SigningCertificate {
  const { raw, subject } = certificate
  const [content] = childrenOf(readElement(raw))
  const [, name = oneLine(subject)] = /^CN=(.*)$/m.exec(subject) ?? []
  return {
    fingerprint: sha256(raw),
    contentFingerprint: sha256(content?.whole ?? raw),
    name: name.slice(0, MAX_NAME),
  }
}

const MAX_NAME = 100

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** As `subject` and `issuer` are compared. */
export const oneLine = (name = ''): string => name.replaceAll('\n', ', ').slice(0, 3 * MAX_NAME)

export function parseCertificate(der: Buffer): X509Certificate | null {
  try {
    return new X509Certificate(der)
  } catch {
    return null // The only way in which Node says that it is none.
  }
}

/** Keys of kinds that Node does not know throw. */
function isTrue(check: () => boolean): boolean {
  try {
    return check()
  } catch {
    return false
  }
}

// DER, as far as it is needed: each element has a tag, a length, and a value.

interface Element {
  readonly tag: number
  readonly value: Buffer
  readonly whole: Buffer
}

/** Undefined: its length lies. */
function readElement(from: Buffer): Element | undefined {
  const [tag, first] = from
  if (tag === undefined || first === undefined || first === 0x80 || first > 0x84) return undefined
  const lengthBytes = first < 0x80 ? 0 : first - 0x80
  const start = 2 + lengthBytes
  if (from.length < start) return undefined
  const length = lengthBytes === 0 ? first : from.readUIntBE(2, lengthBytes)
  if (from.length < start + length) return undefined
  return {
    tag,
    value: from.subarray(start, start + length),
    whole: from.subarray(0, start + length),
  }
}

const MAX_CHILDREN = 64

function childrenOf(element: Element | undefined): readonly Element[] {
  const found: Element[] = []
  for (
    let rest = element?.value ?? Buffer.alloc(0);
    rest.length > 0 && found.length < MAX_CHILDREN;
  ) {
    const child = readElement(rest)
    if (child === undefined) break
    found.push(child)
    rest = rest.subarray(child.whole.length)
  }
  return found
}
