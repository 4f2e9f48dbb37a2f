/** Renders a boot decision, which is made once, in the words of the boot loader that asked. */
import type { BootDecision, BootHeader } from './boot-decision.ts'
import { GRUB_EXIT, renderGrub, type GrubServer } from './grub-script.ts'
import { IPXE_EXIT, renderIpxe } from './ipxe-script.ts'

/** Null: iPXE; else how GRUB reaches this server. */
export type BootLoader = GrubServer | null

/** `grub`: null for iPXE. */
export const renderBoot = (
  decision: BootDecision,
  header: BootHeader,
  grub: BootLoader = null,
): string => (grub === null ? renderIpxe(decision, header) : renderGrub(decision, header, grub))

/** For an unknown machine, or without a decision: it boots what comes next. */
export const renderExit = (grub: BootLoader): string => (grub === null ? IPXE_EXIT : GRUB_EXIT)
