/** A boot entry: what a machine can be booted into once instead of its order, such as a memory test or an installer. */
import { z } from 'zod'
import type { EfiProgram } from '#engine/bootable/rules/efi-program.ts'
import type { VendorKeys } from '#engine/bootable/rules/key-list.ts'
import { findUnknownPlaceholder } from '#engine/first-boot/rules/template.ts'
import { isBareFileName } from '#kit/foundation/file-name.ts'
import { BOOT_ARCHS } from '#fleet/boot/rules/boot-set.ts'

export const MAX_ENTRIES = 50
export const MAX_NOTE_CHARACTERS = 500
/** With `{{answers}}` filled in, the line stays below the 2047 that kernels take. */
export const MAX_ARGUMENT_CHARACTERS = 1200
const MAX_ADDRESSES = 4
const MAX_ANSWER_CHARACTERS = 65_536

/** Part of addresses, too. */
export const EntryNameSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'at most 64 letters, digits and . _ - that begin with a letter or a digit',
  )

const FIRMWARES = ['any', 'bios', 'uefi'] as const

/** Stands for the address below which a machine finds its own answers; it ends with a slash. */
export const ANSWERS = '{{answers}}'

const FileSchema = z.strictObject({
  name: z.string().max(255).refine(isBareFileName, 'the name of a file in the boot folder'),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'a SHA-256: 64 hexadecimal digits, lower case'),
})

/** Nothing that ends a word or is expanded, for iPXE, GRUB or the kernel. */
const WORD = /^(?![&;]+$)[\w.~:/?=&%@,+[\]();*!^-]+$/

const ArgumentsSchema = z
  .string()
  .trim()
  .max(MAX_ARGUMENT_CHARACTERS)
  .superRefine((line, context) => {
    if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(line)) return void context.addIssue('must be one line')
    const wrong = wordsOf(line.replaceAll(ANSWERS, '')).find((word) => !WORD.test(word))
    if (wrong !== undefined) context.addIssue(`${wrong} has a character that boot loaders misread`)
    if (line.split(ANSWERS).length > MAX_ADDRESSES + 1)
      context.addIssue(`${ANSWERS} can stand there ${MAX_ADDRESSES} times`)
  })

export const wordsOf = (line: string): readonly string[] =>
  line.split(' ').filter((word) => word !== '')

/** The files are in the boot folder; one of `kernel` and `program` is there. */
const FieldsSchema = z.strictObject({
  processor: z.enum(BOOT_ARCHS),
  firmware: z.enum(FIRMWARES).default('any'),
  kernel: FileSchema.nullable().default(null),
  initrd: FileSchema.nullable().default(null),
  program: FileSchema.nullable().default(null).describe('An EFI program, instead of a kernel'),
  arguments: ArgumentsSchema.default(''),
  answers: z
    .string()
    .max(MAX_ANSWER_CHARACTERS)
    .default('')
    .describe('A Kickstart or preseed file, with the placeholders of first-boot templates'),
  note: z.string().trim().max(MAX_NOTE_CHARACTERS).default(''),
})

export const BootEntrySchema = FieldsSchema.superRefine((entry, context) => {
  const { kernel, initrd, program, firmware, processor, answers } = entry
  const say = (path: keyof typeof entry, message: string) =>
    context.addIssue({ code: 'custom', path: [path], message })
  if ((kernel === null) === (program === null))
    say('kernel', 'give either a kernel or an EFI program')
  if (initrd !== null && kernel === null) say('initrd', 'only a kernel has an initrd')
  const unknown = findUnknownPlaceholder(answers)
  if (unknown !== null) say('answers', unknown)
  const isUefi = program !== null || processor === 'arm64'
  if (isUefi && firmware !== 'uefi') say('firmware', 'must be uefi for an EFI program or arm64')
})

export type BootEntry = Readonly<z.output<typeof BootEntrySchema>>

export const EntryRecordSchema = FieldsSchema.extend({ saved_at: z.string() })

export interface NamedEntry extends Readonly<z.output<typeof EntryRecordSchema>> {
  readonly name: string
}

export const ENTRY_PARTS = ['kernel', 'initrd', 'program'] as const
export type EntryPart = (typeof ENTRY_PARTS)[number]

export const listParts = (entry: Pick<BootEntry, EntryPart>) =>
  ENTRY_PARTS.flatMap((part) => {
    const file = entry[part]
    return file === null ? [] : [{ part, ...file }]
  })

/** The part that the boot loader starts. */
export const startOf = ({ kernel, program }: Pick<BootEntry, EntryPart>) => kernel ?? program

export const hasAnswers = ({ arguments: line }: Pick<BootEntry, 'arguments'>): boolean =>
  line.includes(ANSWERS)

/** An entry, and what its files are now. */
export interface KnownEntry {
  readonly entry: NamedEntry
  /** Why its files are not sent, as a clause; null: they are what they should be. */
  readonly trouble: string | null
  /** What is started, where it is an EFI program or a kernel that is one. */
  readonly program: EfiProgram | null
  /** Whom the shim in the boot folder trusts and has revoked; null: there is none, or it does not say. */
  readonly shimKeys: VendorKeys | null
}
