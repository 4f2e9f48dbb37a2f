/** What a machine's firmware starts, as its live system reports it and the server keeps it. */
import { z } from 'zod'

/** As in the names of the programs that firmware starts. */
export const PROCESSORS = ['x64', 'ia32', 'aa64', 'arm', 'riscv64'] as const
export type EfiProcessor = (typeof PROCESSORS)[number]

/** Beyond these, a digest says no more: some 400 are revoked, and one in four thousand million looks like one of them. */
export const DIGEST_DIGITS = 8
export const MAX_DIGESTS = 4096
export const MAX_CERTIFICATES = 32
const MAX_SBAT = 100

const CertificateSchema = z.object({
  /** SHA-256 of its DER. */
  fingerprint: z.string().regex(/^[0-9a-f]{64}$/),
  name: z.string().max(100),
  /** As in `issuer` of a chain. */
  subject: z.string().max(300),
})

const KeyListSchema = z.object({
  certificates: z.array(CertificateSchema).max(MAX_CERTIFICATES),
  /** The first digits of SHA-256, one after the other: of programs, and of certificates' contents. */
  digests: z
    .string()
    .max(DIGEST_DIGITS * MAX_DIGESTS)
    .regex(/^(?:[0-9a-f]{8})*$/),
  /** Entries of other kinds, or beyond the limits. */
  others: z.int().min(0),
})
export type KeyList = Readonly<z.output<typeof KeyListSchema>>

export const FirmwareSchema = z.object({
  kind: z.enum(['bios', 'uefi']),
  /** Of the programs that the firmware starts; null: unknown. */
  processor: z.enum(PROCESSORS).nullable(),
  /** Null: unknown. */
  secure_boot: z.boolean().nullable(),
  /** Null: they cannot be read. */
  allowed: KeyListSchema.nullable(),
  revoked: KeyListSchema.nullable(),
  /** What a shim refuses: component to generation; null: none was set yet. */
  sbat_level: z
    .record(z.string().max(64), z.int().min(0))
    .refine((level) => Object.keys(level).length <= MAX_SBAT)
    .nullable(),
})
export type FirmwareFacts = Readonly<z.output<typeof FirmwareSchema>>
