//! Recognises the columns of bank statements: by their names, in the languages of the banks that we
//! know, and by the data below them.

use std::collections::HashSet;

use domain::Reference;
use domain::records::SuggestedColumns;

use super::deposits::is_bank_id;
use super::statement_amounts::amount;

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
    }
}

/// Adds the required columns that have no known name, if the rows below the header show which they
/// are.
pub(super) fn by_data(named: SuggestedColumns, rows: &[Vec<String>]) -> SuggestedColumns {
    let mut found = named;
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let is_free = |found: &SuggestedColumns, place: usize| {
        let SuggestedColumns { bank_id, reference, amount, debit, currency, payer, .. } = *found;
        ![bank_id, reference, amount, debit, currency, payer].contains(&Some(place))
    };
    let fits = |place: usize, is_it: &dyn Fn(&str) -> bool| {
        !rows.is_empty() && rows.iter().all(|row| row.get(place).is_some_and(|cell| is_it(cell)))
    };
    let first = |found: &SuggestedColumns, is_it: &dyn Fn(&str) -> bool| {
        (0..width).find(|place| is_free(found, *place) && fits(*place, is_it))
    };
    if found.currency.is_none() {
        found.currency = first(&found, &|cell| {
            cell.len() == 3 && cell.bytes().all(|byte| byte.is_ascii_uppercase())
        });
    }
    if found.amount.is_none() {
        found.amount = first(&found, &has_decimals);
    }
    if found.reference.is_none() {
        let named = |place: usize| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            cells.filter(|cell| !Reference::all_in(cell).is_empty()).count()
        };
        let free = (0..width).filter(|place| is_free(&found, *place) && named(*place) > 0);
        found.reference = free.max_by_key(|place| (named(*place), usize::MAX - place));
    }
    if found.bank_id.is_none() {
        let is_unique = |place: &usize| {
            let cells: HashSet<_> = rows.iter().filter_map(|row| row.get(*place)).collect();
            cells.len() == rows.len()
        };
        let is_id = |cell: &str| {
            let digits = cell.bytes().filter(u8::is_ascii_digit).count();
            is_bank_id(cell) && digits > 0 && !is_date(cell) && !has_decimals(cell)
        };
        let mut free = (0..width).filter(|place| is_free(&found, *place) && fits(*place, &is_id));
        found.bank_id = free.find(is_unique);
    }
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
mod tests {
    use domain::records::SuggestedColumns;

    use super::{by_data, by_name};

    fn cells(line: &str) -> Vec<String> {
        line.split(';').map(str::to_owned).collect()
    }

    #[test]
    fn columns_are_known_by_their_names_in_several_languages() {
        for header in [
            "Transaction-ID;Payment reference;Amount;Currency;Payer;Narrative",
            "Buchungsnummer;Referenz;Betrag;Währung;Auftraggeber;Verwendungszweck",
            "Identifiant;Référence;Montant;Devise;Payeur;Libellé",
            "Número de operación;Referencia;Importe;Divisa;Ordenante;Concepto",
            "Número da transação;Referência;Valor;Moeda;Remetente;Histórico",
            "Transactienummer;Kenmerk;Bedrag;Valuta;Naam;Omschrijving",
        ] {
            let expected = SuggestedColumns {
                bank_id: Some(0),
                reference: Some(1),
                amount: Some(2),
                debit: None,
                currency: Some(3),
                payer: Some(4),
                purpose: Some(5),
            };
            assert_eq!(by_name(&cells(header)), expected, "{header}");
        }
        for header in [
            "Id;Reference;Debit;Credit;Balance",
            "Id;Reference;Paid out;Paid in",
            "Umsatz-ID;Referenz;Soll;Haben;Saldo",
            "Identifiant;Référence;Débit;Crédit",
            "Número de operación;Referencia;Cargo;Abono",
            "Número da operação;Referência;Débito;Crédito",
            "Transactienummer;Kenmerk;Af;Bij",
            "Transaksienommer;Verwysing;Debiet;Krediet",
            "Numero operazione;Riferimento;Dare;Avere",
        ] {
            let found = by_name(&cells(header));
            let places = (found.bank_id, found.reference, found.debit, found.amount);
            assert_eq!(places, (Some(0), Some(1), Some(2), Some(3)), "{header}");
        }
        // A signed amount suffices, and one of two columns doesn't.
        let found = by_name(&cells("Id;Reference;Debit;Credit;Amount"));
        assert_eq!((found.amount, found.debit), (Some(4), None));
        let found = by_name(&cells("Id;Reference;Credit"));
        assert_eq!((found.amount, found.debit), (None, None));
        // A single column with the purpose holds the reference.
        let found = by_name(&cells("Id;Verwendungszweck;Betrag"));
        assert_eq!((found.reference, found.purpose), (Some(1), None));
    }

    #[test]
    fn columns_without_a_known_name_are_known_by_their_data() {
        let rows = ["27.11.2026;A1;Rent 123456;12,50;USD", "27.11.2026;A2;654321;-1,00;USD"];
        let rows: Vec<_> = rows.into_iter().map(cells).collect();
        let found = by_data(SuggestedColumns::default(), &rows);
        let expected = SuggestedColumns {
            bank_id: Some(1),
            reference: Some(2),
            amount: Some(3),
            debit: None,
            currency: Some(4),
            payer: None,
            purpose: None,
        };
        assert_eq!(found, expected);
        assert_eq!(by_data(SuggestedColumns::default(), &[]), SuggestedColumns::default());
    }
}
