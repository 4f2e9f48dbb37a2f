/** The wizard's texts in the language that is in use; another language is one more file, named here. */
import { ENGLISH } from './english.ts'

/** The same keys with other texts, as deep as the table goes. */
type Translated<Table> = {
  readonly [Key in keyof Table]: Table[Key] extends string ? string : Translated<Table[Key]>
}

/** What the table of any language satisfies; that its placeholders are known is checked at each use. */
export type Translation = Translated<typeof ENGLISH>

export const WIZARD_TEXTS = ENGLISH satisfies Translation
