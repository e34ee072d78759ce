use domain::records::SuggestedColumns;

use super::{by_data, by_name};

fn cells(line: &str) -> Vec<String> {
    line.split(';').map(str::to_owned).collect()
}

#[test]
fn columns_are_known_by_their_names_in_several_languages() {
    for header in [
        "Bank ID;Reference;Amount;Currency;Payer;Narrative;Date",
        "Transaction-ID;Payment reference;Amount;Currency;Payer;Narrative;Date",
        "Buchungsnummer;Referenz;Betrag;Währung;Auftraggeber;Verwendungszweck;Buchungstag",
        "Identifiant;Référence;Montant;Devise;Payeur;Libellé;Date de l'opération",
        "Número de operación;Referencia;Importe;Divisa;Ordenante;Concepto;Fecha",
        "Número da transação;Referência;Valor;Moeda;Remetente;Histórico;Data",
        "Transactienummer;Kenmerk;Bedrag;Valuta;Naam;Omschrijving;Boekdatum",
    ] {
        let expected = SuggestedColumns {
            bank_id: Some(0),
            reference: Some(1),
            amount: Some(2),
            debit: None,
            currency: Some(3),
            payer: Some(4),
            purpose: Some(5),
            paid_on: Some(6),
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
    // A column of signed amounts suffices. A column of incoming or outgoing money alone
    // doesn't.
    let found = by_name(&cells("Id;Reference;Debit;Credit;Amount"));
    assert_eq!((found.amount, found.debit), (Some(4), None));
    let found = by_name(&cells("Id;Reference;Credit"));
    assert_eq!((found.amount, found.debit), (None, None));
    // The day of the booking is preferred.
    let found = by_name(&cells("Wertstellung;Id;Referenz;Betrag;Buchungstag"));
    assert_eq!(found.paid_on, Some(4));
    // A single column with the purpose holds the reference.
    let found = by_name(&cells("Id;Verwendungszweck;Betrag"));
    assert_eq!((found.reference, found.purpose), (Some(1), None));
}

#[test]
fn columns_without_a_known_name_are_known_by_their_data() {
    let rows = ["27.11.2026;A1;Rent 123456;12,50;USD", "27.11.2026;A2;654321;-1,00;USD"];
    let rows: Vec<_> = rows.into_iter().map(cells).collect();
    // A name alone doesn't make a column one of days.
    let misnamed = SuggestedColumns { paid_on: Some(2), ..SuggestedColumns::default() };
    assert_eq!(by_data(misnamed, &rows).paid_on, Some(0));
    let found = by_data(SuggestedColumns::default(), &rows);
    let expected = SuggestedColumns {
        bank_id: Some(1),
        reference: Some(2),
        amount: Some(3),
        debit: None,
        currency: Some(4),
        payer: None,
        purpose: None,
        paid_on: Some(0),
    };
    assert_eq!(found, expected);
    assert_eq!(by_data(SuggestedColumns::default(), &[]), SuggestedColumns::default());
}

#[test]
fn a_bank_id_is_never_a_day_an_amount_or_a_column_with_repeated_values() {
    let suggested = |header: &str, rows: &[&str]| {
        let rows: Vec<_> = rows.iter().map(|row| cells(row)).collect();
        let found = by_data(by_name(&cells(header)), &rows);
        (found.bank_id, found.reference, found.amount, found.purpose)
    };
    // The bank's reference is an ID, and the payer wrote the application's reference elsewhere.
    let header = "Date;Libellé;Débit;Crédit;Référence";
    let rows = ["27/11/2026;Loyer 123456;;12,50;VIR-81", "27/11/2026;Frais;2,00;;VIR-82"];
    assert_eq!(suggested(header, &rows), (Some(4), Some(1), Some(3), None));
    // If the column names applications, it has the payers' references, and no column has the
    // ID.
    let rows = ["27/11/2026;Loyer;;12,50;123456", "27/11/2026;Frais;2,00;;654321"];
    assert_eq!(suggested(header, &rows), (None, Some(4), Some(3), Some(1)));
    // The name alone doesn't show that a column has the ID.
    for column in [["2026-11-27", "2026-11-28"], ["1,00", "2,00"], ["A1", "A1"]] {
        let rows = column.map(|id| format!("{id};Rent 123456;5,00;B{id}"));
        let rows = [rows[0].as_str(), rows[1].as_str()];
        let found = suggested("Id;Reference;Amount;Other", &rows);
        assert_ne!(found.0, Some(0), "{column:?}");
    }
}
