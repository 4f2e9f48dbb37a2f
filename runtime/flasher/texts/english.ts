/** Every text of the wizard in English, by screen; `{name}` stands for a value. */
import { CAPTURE } from './english/capture.ts'
import { DRIVEN } from './english/driven.ts'
import { FLASH } from './english/flash.ts'
import { FRAME } from './english/frame.ts'

export const ENGLISH = { ...FRAME, ...FLASH, ...CAPTURE, ...DRIVEN } as const
