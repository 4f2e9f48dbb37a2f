/** Which table the pages take their texts from. */
import { ENGLISH } from './english.ts'

/** A second language is one more table of this shape, chosen here. */
export const PAGES = ENGLISH
