//! Recognises the columns of bank statements: by their names, in the languages of the banks that we
//! know, and by the data below them.

use std::collections::HashSet;

use domain::Reference;
use domain::records::SuggestedColumns;

use super::deposits::is_bank_id;
use super::statement_amounts::amount;
use super::statement_days::day;

/// Names of columns, as [`folded`] returns them: English, German, French, Spanish, Portuguese,
/// Dutch, Afrikaans and Italian. Earlier names win.
const BANK_IDS: &[&str] = &[
    "bank id",
    "transaction id",
    "transaction reference",
    "transaction number",
    "bank reference",
    "entry reference",
    "unique id",
    "transaktions id",
    "transaktionsid",
    "transaktionsnummer",
    "buchungs id",
    "buchungsnummer",
    "umsatz id",
    "bankreferenz",
    "id transaction",
    "identifiant de transaction",
    "numéro de transaction",
    "référence bancaire",
    "identifiant",
    "id de transacción",
    "número de transacción",
    "número de operación",
    "referencia bancaria",
    "id da transação",
    "número da transação",
    "número da operação",
    "referência bancária",
    "transactie id",
    "transactienummer",
    "bankreferentie",
    "transaksie id",
    "transaksienommer",
    "bankverwysing",
    "id transazione",
    "numero operazione",
    "id",
];
const REFERENCES: &[&str] = &[
    "reference",
    "payment reference",
    "customer reference",
    "zahlungsreferenz",
    "referenz",
    "kundenreferenz",
    "référence de paiement",
    "référence",
    "référence client",
    "referencia de pago",
    "referencia",
    "referência de pagamento",
    "referência",
    "betalingskenmerk",
    "kenmerk",
    "betaalverwysing",
    "verwysing",
    "riferimento",
    "description",
    "details",
    "purpose",
    "verwendungszweck",
    "libellé",
    "concepto",
    "descripción",
    "descrição",
    "omschrijving",
    "beskrywing",
    "causale",
];
const AMOUNTS: &[&str] = &[
    "amount", "sum", "betrag", "umsatz", "montant", "importe", "monto", "valor", "montante",
    "quantia", "bedrag", "importo",
];
/// Names of the column for incoming money, if outgoing money has a column of its own.
const CREDITS: &[&str] = &[
    "credit",
    "credits",
    "credit amount",
    "amount credit",
    "paid in",
    "money in",
    "deposit",
    "deposits",
    "haben",
    "gutschrift",
    "betrag haben",
    "crédit",
    "montant crédit",
    "haber",
    "abono",
    "abonos",
    "ingreso",
    "ingresos",
    "crédito",
    "créditos",
    "entrada",
    "entradas",
    "bij",
    "bijgeschreven",
    "krediet",
    "kredietbedrag",
    "avere",
    "accredito",
    "accrediti",
    "entrate",
];
/// Names of the column for outgoing money, if it has one of its own.
const DEBITS: &[&str] = &[
    "debit",
    "debits",
    "debit amount",
    "amount debit",
    "paid out",
    "money out",
    "withdrawal",
    "withdrawals",
    "soll",
    "lastschrift",
    "belastung",
    "betrag soll",
    "débit",
    "montant débit",
    "debe",
    "cargo",
    "cargos",
    "gasto",
    "gastos",
    "débito",
    "débitos",
    "saída",
    "saídas",
    "af",
    "afgeschreven",
    "debiet",
    "debietbedrag",
    "dare",
    "addebito",
    "addebiti",
    "uscite",
];
const CURRENCIES: &[&str] = &[
    "currency",
    "ccy",
    "währung",
    "waehrung",
    "devise",
    "monnaie",
    "moneda",
    "divisa",
    "moeda",
    "valuta",
    "geldeenheid",
];
const PAYERS: &[&str] = &[
    "payer",
    "payer name",
    "name of payer",
    "sender",
    "remitter",
    "debtor",
    "counterparty",
    "name",
    "auftraggeber",
    "zahler",
    "zahlungspflichtiger",
    "name zahlungsbeteiligter",
    "donneur d ordre",
    "payeur",
    "émetteur",
    "nom",
    "ordenante",
    "pagador",
    "remitente",
    "nombre",
    "remetente",
    "nome",
    "betaler",
    "naam",
    "ordinante",
    "pagatore",
];
const PURPOSES: &[&str] = &[
    "purpose",
    "payment purpose",
    "remittance information",
    "narrative",
    "description",
    "details",
    "verwendungszweck",
    "buchungstext",
    "motif",
    "libellé",
    "concepto",
    "descripción",
    "descrição",
    "histórico",
    "omschrijving",
    "beskrywing",
    "causale",
];

/// Names of the column with the day of the payment. The day of the booking is preferred to the day
/// from which the money bears interest.
const DAYS: &[&str] = &[
    "payment date",
    "booking date",
    "transaction date",
    "posting date",
    "buchungstag",
    "buchungsdatum",
    "zahlungsdatum",
    "date de paiement",
    "date de l opération",
    "date d opération",
    "date opération",
    "date comptable",
    "fecha de pago",
    "fecha de operación",
    "fecha operación",
    "fecha contable",
    "data de pagamento",
    "data da operação",
    "data da transação",
    "data do movimento",
    "data movimento",
    "boekdatum",
    "boekingsdatum",
    "transactiedatum",
    "transaksiedatum",
    "betaaldatum",
    "data di pagamento",
    "data operazione",
    "data contabile",
    "date",
    "datum",
    "fecha",
    "data",
    "value date",
    "wertstellung",
    "valutadatum",
    "date de valeur",
    "date valeur",
    "fecha de valor",
    "fecha valor",
    "data de valor",
    "data valor",
    "rentedatum",
    "waardedatum",
    "data valuta",
];

/// Returns a name in lower case, with one space between its words.
fn folded(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Finds columns by their names. Uses no column twice.
pub(super) fn by_name(names: &[String]) -> SuggestedColumns {
    let names: Vec<_> = names.iter().map(|name| folded(name)).collect();
    let mut used = HashSet::new();
    let mut find = |known: &[&str]| {
        let mut places = known.iter().filter_map(|name| names.iter().position(|each| each == name));
        let found = places.find(|place| !used.contains(place));
        used.extend(found);
        found
    };
    let (bank_id, reference) = (find(BANK_IDS), find(REFERENCES));
    // A column of signed amounts is preferred to separate columns for incoming and outgoing money.
    let (amount, debit) = match find(AMOUNTS) {
        Some(amount) => (Some(amount), None),
        None => find(CREDITS).zip(find(DEBITS)).unzip(),
    };
    SuggestedColumns {
        bank_id,
        reference,
        amount,
        debit,
        currency: find(CURRENCIES),
        payer: find(PAYERS),
        purpose: find(PURPOSES),
        paid_on: find(DAYS),
    }
}

/// The first rows of a file below its header.
#[derive(Clone, Copy)]
struct Rows<'a>(&'a [Vec<String>]);

impl Rows<'_> {
    fn width(self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether there are rows, and the column's cell in each of them fits.
    fn all(self, place: usize, fits: impl Fn(&str) -> bool) -> bool {
        let fits = |row: &Vec<String>| row.get(place).is_some_and(|cell| fits(cell));
        !self.0.is_empty() && self.0.iter().all(fits)
    }

    /// Returns how many of the column's cells name an application.
    fn references(self, place: usize) -> usize {
        let cells = self.0.iter().filter_map(|row| row.get(place));
        cells.filter(|cell| !Reference::all_in(cell).is_empty()).count()
    }

    /// Whether the column can tell payments apart: its cells are different IDs, and none is a day
    /// or an amount.
    fn are_ids(self, place: usize) -> bool {
        let is_id = |cell: &str| {
            let digits = cell.bytes().filter(u8::is_ascii_digit).count();
            is_bank_id(cell) && digits > 0 && !is_date(cell) && !has_decimals(cell)
        };
        let cells: HashSet<_> = self.0.iter().filter_map(|row| row.get(place)).collect();
        self.all(place, is_id) && cells.len() == self.0.len()
    }
}

/// Corrects the columns that were found by their names where the rows below the header contradict
/// them, and adds the required columns that have no known name.
pub(super) fn by_data(named: SuggestedColumns, rows: &[Vec<String>]) -> SuggestedColumns {
    let mut found = named;
    let rows = Rows(rows);
    let is_free = |found: &SuggestedColumns, place: usize| {
        let SuggestedColumns { bank_id, reference, amount, debit, .. } = *found;
        let SuggestedColumns { currency, payer, paid_on, .. } = *found;
        ![bank_id, reference, amount, debit, currency, payer, paid_on].contains(&Some(place))
    };
    let free = |found: &SuggestedColumns| {
        let found = *found;
        (0..rows.width()).filter(move |place| is_free(&found, *place))
    };
    found.bank_id = found.bank_id.filter(|place| rows.0.is_empty() || rows.are_ids(*place));
    let is_day = |cell: &str| day(cell, false).or_else(|| day(cell, true)).is_some();
    let has_days = |place: usize| {
        let mut cells = rows.0.iter().filter_map(|row| row.get(place));
        cells.any(|cell| is_day(cell))
    };
    found.paid_on = found.paid_on.filter(|place| rows.0.is_empty() || has_days(*place));
    if found.paid_on.is_none() {
        found.paid_on = free(&found).find(|place| rows.all(*place, is_day));
    }
    if found.currency.is_none() {
        let is_currency =
            |cell: &str| cell.len() == 3 && cell.bytes().all(|b| b.is_ascii_uppercase());
        found.currency = free(&found).find(|place| rows.all(*place, is_currency));
    }
    if found.amount.is_none() {
        found.amount = free(&found).find(|place| rows.all(*place, has_decimals));
    }
    if found.bank_id.is_none() {
        found.bank_id = free(&found).find(|place| rows.are_ids(*place));
    }
    // Some banks call their own ID the reference. The payer's text is in another column then.
    if let (None, Some(place)) = (found.bank_id, found.reference)
        && rows.are_ids(place)
        && rows.references(place) == 0
    {
        (found.bank_id, found.reference) = (Some(place), None);
    }
    if found.reference.is_none() {
        let candidates = free(&found).filter(|place| rows.references(*place) > 0);
        let most = candidates.max_by_key(|place| (rows.references(*place), usize::MAX - place));
        found.reference = most.or(found.purpose);
    }
    found.purpose = found.purpose.filter(|place| found.reference != Some(*place));
    found
}

/// Whether a cell is an amount with decimals. Numbers without them could be anything.
fn has_decimals(cell: &str) -> bool {
    cell.contains([',', '.']) && amount(cell).is_some()
}

/// Whether a cell looks like a day: three numbers with the same separator.
fn is_date(cell: &str) -> bool {
    let day = cell.split([' ', 'T']).next().unwrap_or_default();
    ['-', '/', '.'].into_iter().any(|separator| {
        let parts: Vec<_> = day.split(separator).collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u16>().is_ok())
    })
}

#[cfg(test)]
mod tests;
