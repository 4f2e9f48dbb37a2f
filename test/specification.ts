/** Both specifications: which test fails when a row of one is broken. `test/specification.test.ts` checks that each is there. */
import { CURRENT_ROWS } from './specification-current.ts'
import { EARLIER_ROWS } from './specification-earlier.ts'

/** By line: sections of both have the same names. */
export const SPECIFICATIONS = { current: CURRENT_ROWS, earlier: EARLIER_ROWS }

export const SPECIFICATION_ROWS = Object.values(SPECIFICATIONS).flat()
