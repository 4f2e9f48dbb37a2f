/** What a table of texts is in any language: the same keys with other texts, as deep as it goes. */
export type Translated<Table> = {
  readonly [Key in keyof Table]: Table[Key] extends string ? string : Translated<Table[Key]>
}
