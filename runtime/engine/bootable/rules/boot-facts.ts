/** What an image starts from, what a machine's firmware starts, and whether the one fits the other. */
import type { EfiProgram, SbatEntries } from './efi-program.ts'
import type { VendorKeys } from './key-list.ts'
import {
  DIGEST_DIGITS,
  type EfiProcessor,
  type FirmwareFacts,
  type KeyList,
} from '#engine/inventory/rules/firmware-facts.ts'

export interface ImageBoot {
  /** Code for BIOS in the first sector; null: it may start nothing. */
  readonly bios: boolean | null
  /** Programs that firmware starts from a disk that it does not know, one for each processor. */
  readonly programs: readonly EfiProgram[]
  /** Processors whose program is there, and is too large or too damaged to be judged. */
  readonly unread: readonly EfiProcessor[]
  /** There is an EFI system partition, or another with a FAT, whatever is in it. */
  readonly hasSystemPartition: boolean
  /** There is no place where firmware looks and nobody has looked. */
  readonly isSearched: boolean
  /** It starts from optical discs (El Torito). */
  readonly isDisc: boolean
}

/** `why` and `wayOut`: whole sentences. */
export type BootVerdict =
  | { readonly answer: 'boots' }
  | { readonly answer: 'unknown'; readonly why: string }
  | { readonly answer: 'refused'; readonly why: string; readonly wayOut: string }

const BOOTS: BootVerdict = { answer: 'boots' }
const unknown = (why: string): BootVerdict => ({ answer: 'unknown', why })
const refused = (why: string, wayOut: string): BootVerdict => ({ answer: 'refused', why, wayOut })

/** `image` null: nobody could look into it. `firmware` null: the machine has not said. */
export function judgeBoot(image: ImageBoot | null, firmware: FirmwareFacts | null): BootVerdict {
  if (image === null) return unknown('The image cannot be looked into.')
  if (firmware === null) return unknown('The machine has not reported its firmware.')
  return firmware.kind === 'bios' ? judgeBios(image) : judgeUefi(image, firmware)
}

/**
 * Why the firmware does not start what the image would start, and the way out; null: it does, nobody
 * knows, or the image starts nothing at all.
 */
export function explainMisfit(image: ImageBoot | null, firmware: FirmwareFacts | null) {
  const verdict = judgeBoot(image, firmware)
  const isLoaded =
    image !== null && (image.bios === true || image.programs.length > 0 || image.unread.length > 0)
  return verdict.answer === 'refused' && isLoaded ? `${verdict.why} ${verdict.wayOut}` : null
}

function judgeBios({ bios, programs, unread, isDisc }: ImageBoot): BootVerdict {
  if (bios === true) return BOOTS
  if (bios === null) return unknown(UNPROVEN)
  if (programs.length > 0 || unread.length > 0)
    return refused(
      'The image starts by UEFI only, and this machine starts by BIOS.',
      'Turn UEFI on in the firmware, or use another image.',
    )
  return refused(isDisc ? DISC : 'The image has no boot loader.', OTHER_IMAGE)
}

const UNPROVEN =
  'The code in the first sector may start nothing: no partition is active, or it is that of a file system.'
const DISC = 'The image starts from optical discs only.'
const OTHER_IMAGE = 'Use another image.'

function judgeUefi(image: ImageBoot, firmware: FirmwareFacts): BootVerdict {
  const { programs, unread, bios, hasSystemPartition, isSearched, isDisc } = image
  const { processor } = firmware
  const verdict = judgePrograms(image, firmware)
  if (verdict !== null) return verdict
  if (processor === null)
    return unknown('The processor that the firmware starts programs for is not known.')
  if (unread.includes(processor))
    return unknown("The image's boot loader is too large or damaged, so it cannot be judged.")
  if (!isSearched) return unknown(ELSEWHERE)
  const [other] = [...programs.map((each) => each.processor), ...unread]
  if (other !== undefined)
    return refused(
      `The image starts on ${other ?? 'other'} processors, and this machine has ${processor}.`,
      OTHER_IMAGE,
    )
  if (hasSystemPartition)
    return unknown(
      'The EFI system partition has no EFI/BOOT loader. Some firmware finds another one.',
    )
  if (bios === true)
    return refused(
      'The image starts by BIOS only, and this machine starts by UEFI.',
      'Turn BIOS (CSM, legacy boot) on in the firmware, or use another image.',
    )
  return refused(isDisc ? DISC : 'The image has no boot loader.', OTHER_IMAGE)
}

/** Firmware starts the first, and some the next where that is refused. Null: none is for the processor. */
function judgePrograms(image: ImageBoot, firmware: FirmwareFacts): BootVerdict | null {
  const { processor, secure_boot } = firmware
  const verdicts = image.programs
    .filter((each) => each.processor === processor)
    .map((each) => (secure_boot === false ? BOOTS : judgeSecure(each, firmware)))
  const isOpen =
    !image.isSearched ||
    image.unread.some((each) => each === processor) ||
    verdicts.some(({ answer }) => answer !== 'refused')
  const [first = null] = verdicts
  return first?.answer === 'refused' && isOpen ? unknown(ELSEWHERE) : first
}

const ELSEWHERE = 'Another part of the image may have a boot loader that starts.'
const TURN_OFF = 'Turn Secure Boot off, or use another image.'

/** The firmware's own rule: one signature that `db` has, none that `dbx` has; dates do not count. */
function judgeSecure(program: EfiProgram, firmware: FirmwareFacts): BootVerdict {
  const { allowed, revoked, secure_boot: isOn, sbat_level: level } = firmware
  if (isOn === null) return unknown('Nobody knows whether Secure Boot is on.')
  if (allowed === null || revoked === null) return unknown("The firmware's keys cannot be read.")
  const why = explainRevoked(program, revoked, level)
  if (why !== null) return refused(`Secure Boot is on, and ${why}.`, TURN_OFF)
  const verdict = judgeAllowed(program, allowed)
  return verdict.answer === 'boots' && revoked.others > 0 ? unknown(STRANGE_KEYS) : verdict
}

/**
 * Why a machine with Secure Boot does not start a kernel or program that is sent to it; null: its
 * firmware or the shim that it came by trusts who signed it. `shim` null: none is known. What the
 * name of an issuer says is enough, for the shim itself looks closer.
 */
export function explainUntrusted(
  program: EfiProgram | null,
  firmware: Pick<FirmwareFacts, 'allowed' | 'revoked' | 'sbat_level'> | null,
  shim: VendorKeys | null,
): string | null {
  if (program === null) return 'it is no EFI program, or is damaged'
  const { allowed = null, revoked = null, sbat_level: level = null } = firmware ?? {}
  const isRefused = (list: KeyList | null, sbat: SbatEntries | null) =>
    list !== null && explainRevoked(program, list, sbat) !== null
  const { trusted, revoked: denied } = shim ?? { trusted: null, revoked: null }
  if (isRefused(revoked, level)) return 'the firmware has revoked it'
  if (isRefused(denied, null)) return 'the shim has revoked it'
  const keys = [allowed, trusted].filter((list) => list !== null)
  if (keys.some((list) => isTrusted(program, list))) return null
  return describeSigners(program, keys.length > 0)
}

function describeSigners({ signatures }: EfiProgram, hasKeys: boolean): string {
  if (signatures.length === 0) return 'it is not signed'
  const signers = listNames(signatures.flatMap(({ certificates }) => certificates.at(-1) ?? []))
  return hasKeys
    ? `it is signed by ${signers}, whom neither the shim nor the firmware is known to trust`
    : `it is signed by ${signers}, and nobody knows whom the machine trusts`
}

const isTrusted = ({ digest, signatures }: EfiProgram, list: KeyList): boolean =>
  hasDigest(list, digest) ||
  signatures.some((chain) => isKnown(chain, list) || isIssued(chain, list))

function explainRevoked(
  { digest, signatures, sbat }: EfiProgram,
  revoked: KeyList,
  level: SbatEntries | null,
): string | null {
  if (hasDigest(revoked, digest) || signatures.some((chain) => isRevoked(chain, revoked)))
    return "the firmware has revoked the image's boot loader"
  const component = sbat === null || level === null ? null : findRevoked(sbat, level)
  if (component === null) return null
  return `this version of the image's boot loader is revoked (SBAT: ${component})`
}

/** Null: none is revoked; or it is no shim, and no other program asks. */
const findRevoked = (program: SbatEntries, level: SbatEntries): string | null =>
  program['shim'] === undefined
    ? null
    : (Object.entries(program).find(
        ([component, generation]) => generation < (level[component] ?? 0),
      )?.[0] ?? null)

function judgeAllowed({ digest, signatures }: EfiProgram, allowed: KeyList): BootVerdict {
  if (hasDigest(allowed, digest)) return BOOTS
  if (signatures.some((chain) => isKnown(chain, allowed))) return BOOTS
  const mayBe = allowed.others > 0 || signatures.some((chain) => isIssued(chain, allowed))
  if (mayBe) return unknown(STRANGE_KEYS)
  if (signatures.length === 0)
    return refused("Secure Boot is on, and the image's boot loader is not signed.", TURN_OFF)
  const signers = signatures.flatMap(({ certificates }) => certificates.at(-1) ?? [])
  const trusts = describeTrust(allowed, signers)
  return refused(
    `Secure Boot is on, and ${trusts}. The image's boot loader is signed by ${listNames(signers)}.`,
    `${TURN_OFF} You can also enrol its certificate in the firmware.`,
  )
}

/** Microsoft's certificates of 2011 and of 2023 that do the same, by their names. */
const PAIRS = [
  {
    signs: 'systems other than Windows',
    names: ['Microsoft Corporation UEFI CA 2011', 'Microsoft UEFI CA 2023'],
  },
  {
    signs: "Windows' boot manager",
    names: ['Microsoft Windows Production PCA 2011', 'Windows UEFI CA 2023'],
  },
] as const

function describeTrust({ certificates }: KeyList, signers: readonly { readonly name: string }[]) {
  for (const { signs, names } of PAIRS) {
    const isOf = ({ name }: { readonly name: string }) => names.some((each) => each === name)
    const others = certificates.filter(isOf)
    if (others.length > 0 && signers.some(isOf))
      return `of Microsoft's certificates for ${signs}, the firmware trusts only ${listNames(others)}`
  }
  return `the firmware trusts ${listNames(certificates)}`
}

const STRANGE_KEYS = 'The firmware has keys of a kind that is not known here.'

type Chain = EfiProgram['signatures'][number]

function hasDigest({ digests }: KeyList, digest: string): boolean {
  const wanted = digest.slice(0, DIGEST_DIGITS)
  for (let at = 0; at < digests.length; at += DIGEST_DIGITS)
    if (digests.startsWith(wanted, at)) return true
  return false
}

const isKnown = ({ certificates }: Chain, keys: KeyList) =>
  certificates.some(({ fingerprint }) =>
    keys.certificates.some((key) => key.fingerprint === fingerprint),
  )

const isRevoked = (chain: Chain, keys: KeyList) =>
  isKnown(chain, keys) ||
  chain.certificates.some(({ contentFingerprint }) => hasDigest(keys, contentFingerprint))

/** A chain whose last issuer has the name of a key: only the key could tell. */
const isIssued = ({ issuer }: Chain, keys: KeyList) =>
  keys.certificates.some(({ subject }) => subject === issuer)

const MAX_NAMES = 3

function listNames(certificates: readonly { readonly name: string }[]): string {
  const names = [...new Set(certificates.map(({ name }) => `“${name}”`))]
  if (names.length === 0) return 'nobody'
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  return `${names.slice(0, MAX_NAMES).join(', ')}${more}`
}
