/** The wizard's texts in the language that is in use; another language is one more file, named here. */
import type { Translated } from '#kit/texts/translated.ts'
import { ENGLISH } from './english.ts'

/** What the table of any language satisfies; that its placeholders are known is checked at each use. */
type FlasherTranslation = Translated<typeof ENGLISH>

export const WIZARD_TEXTS = ENGLISH satisfies FlasherTranslation
