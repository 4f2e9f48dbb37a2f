/** Current line: which test fails when a row of the specification is broken, by the specification's sections. */
import { rowsOf, type SpecificationRow } from './support/specification-rows.ts'

export const CURRENT_ROWS: readonly SpecificationRow[] = [
  ...rowsOf('Endpoints, open routes', [
    [
      'GET /healthz: status ok | GET /version',
      'kit/web/answers/open.test.ts',
      'health and version',
    ],
  ]),
]
